// From places on the screen to characters of a message's source, and back.
import {pieceOf} from "./markdown_view.js";
import {firstBehind} from "./tokens.js";

// Offset in a piece's node -> offset in the source.
function toSource(piece, offset) {
  if (!piece.lines) return Math.min(piece.start + offset, piece.end);
  for (const {start, end} of piece.lines) {
    if (offset <= end - start) return start + offset;
    offset -= end - start + 1;
  }
  return piece.end;
}

// Offset in the source -> offset in a piece's node.
function toNode(piece, source) {
  let at = source - piece.start;
  if (piece.lines) {
    at = 0;
    for (const {start, end} of piece.lines) {
      if (source <= end) return at + Math.max(source - start, 0);
      at += end - start + 1;
    }
  }
  return Math.min(Math.max(at, 0), piece.node.length);
}

// What of the source's characters [start, end) is on the screen, or null: marks of Markdown are
// not. `pieces` are all of a view's, which a caller of many asks for once.
export function rangeOf(pieces, start, end, Kind = Range) {
  let i = firstBehind(pieces, start);
  if (i === pieces.length || pieces[i].start >= end) return null;
  const first = pieces[i];
  while (i + 1 < pieces.length && pieces[i + 1].start < end) ++i;
  const last = pieces[i];
  const ends = {
    startContainer: first.node,
    startOffset: toNode(first, Math.max(start, first.start)),
    endContainer: last.node,
    endOffset: toNode(last, Math.min(end, last.end)),
  };
  if (ends.startContainer === ends.endContainer && ends.startOffset >= ends.endOffset) return null;
  if (Kind === StaticRange) return new StaticRange(ends);
  const range = document.createRange();
  range.setStart(ends.startContainer, ends.startOffset);
  range.setEnd(ends.endContainer, ends.endOffset);
  return range;
}

function caretAt(x, y) {
  if (document.caretPositionFromPoint) {
    const caret = document.caretPositionFromPoint(x, y);
    return caret && {node: caret.offsetNode, offset: caret.offset};
  }
  const range = document.caretRangeFromPoint?.(x, y);  // Safari before 18.4
  return range && {node: range.startContainer, offset: range.startOffset};
}

function holds(range, x, y) {
  for (const box of range.getClientRects()) {
    if (x >= box.left && x <= box.right && y >= box.top && y <= box.bottom) return true;
  }
  return false;
}

// The character of a view under a place on the screen, as {view, offset}, or null.
export function characterAt(x, y) {
  const caret = caretAt(x, y);
  const piece = caret && pieceOf.get(caret.node);
  if (!piece) return null;
  // The caret stands between two characters: the place is on one of them, or on neither.
  const range = document.createRange();
  for (const offset of [caret.offset - 1, caret.offset]) {
    if (offset < 0 || offset >= caret.node.length) continue;
    range.setStart(caret.node, offset);
    range.setEnd(caret.node, offset + 1);
    if (holds(range, x, y)) return {view: piece.view, offset: toSource(piece, offset)};
  }
  return null;
}
