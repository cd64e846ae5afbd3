"""Small templates that cover the language; make_template_golden.py asks jinja2 what they give."""

from __future__ import annotations

# Variables that every snippet sees besides messages and tools.
VARIABLES = {
    "s": "Hello, World",
    "u": "Grüße, ÉCOLE ß ǆ 日本 😀!",
    "ws": "  \t padded\n line \u00a0",
    "lines": "one\n\n two\nthree",
    "n": 7,
    "m": -3,
    "f": 2.5,
    "t": True,
    "z": None,
    "xs": [3, 1, 2],
    "words": ["pear", "Apple", "fig", "apple"],
    "d": {"b": 1, "a": {"c": [1, 2, {"k": "v"}]}, "items": "shadow", "é": "<x>"},
    "rows": [
        {"name": "Ann", "age": 30, "city": "Rome", "ok": True},
        {"name": "bob", "age": 25, "city": "oslo"},
        {"name": "Cid", "age": 30, "city": "rome", "ok": False},
    ],
    "nested": [[1, [2, 3]], [4, []]],
    "html": '<a href="x">T&C\'s</a>',
}

# Expressions, printed with {{ … }}.
EXPRESSIONS = r"""
1 + 2 * 3
(1 + 2) * 3
7 // 2
-7 // 2
7 // -2
-7 % 3
7 % -3
-7.5 // 2
7.5 % -2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
10 / 4
10 / 5
1 / 3
1e3
1.5e-7
1e16
123456789012345680.0
0.1 + 0.2
1e22
-0.0
5 // 0
5 % 0
5 / 0
2.5 * 2
1_000 + 0x1F + 0b101 + 0o17
9223372036854775807
'ab' * 3
3 * 'ab'
[1, 2] * 2
[1] + [2]
(1, 2) + (3,)
(1,)
()
'a' + 1
1 + 'a'
'a' - 'b'
+3
-t
+'a'
true + true
1 ~ 2 ~ 'x'
none ~ true ~ 1.0 ~ [1]
1 < 2 < 3
1 < 3 < 2
1 == 1.0
true == 1
'a' < 'b'
'Z' < 'a'
[1, 2] < [1, 3]
(1, 2) == (1, 2)
[1] == (1,)
{'a': 1} == {'a': 1.0}
'a' < 1
none == none
none < 1
1 != 2
2 in xs
9 not in xs
'ell' in s
1 in s
'a' in d
'zz' in d
1 in none
not t
not not 0
t and 'yes'
z or 'no'
0 or '' or [] or 'last'
1 if t else 2
1 if z
'x' if z else ('y' if t else 'w')
(1 if z) is defined
s[0]
s[-1]
s[1:4]
s[::-1]
s[-3:]
s[10:2:-3]
s[::0]
u[0:7]
u[-2]
u[::-2]
xs[0]
xs[5]
xs[-1]
xs[1:]
xs[:-1]
xs['a']
xs[none]
xs[true]
xs.0
range(5)[1:3]
range(10)[::3]
range(10)[5:2]
range(0, 10)[::100]
range(10, 0, -3)[1::-2]
range(10)[2::9223372036854775807]
range(10)[::-2]|list
d['b']
d.b
d.a.c[2].k
d['a']['c'][-1]['k']
d.nothing
d.nothing.more
d['nothing']
d[xs]
nothing
nothing.x
nothing['x']
nothing + 1
nothing ~ 'x'
nothing == nothing2
nothing|length
d.items
d['items']
d.items()
d.keys()
d.values()|list
d.get('b')
d.get('q')
d.get('q', 5)
d.get('q', default=5)
d.items()|list|length
d.keys()[0]
d.update({'x': 1})
d.pop('b')
xs.append(4)
xs.append
d.clear is defined
xs.sort()
xs.count(1)
xs.index(2)
xs.index(9)
s.upper()
s.lower()
u.upper()
u.lower()
u.title()
u.capitalize()
u.swapcase()
'ΑΣ ΑΣΒ Σ'.lower()
'ŉ ﬁ İ'.upper()
'İ'.lower()
s.title()
"they're bill's".title()
"they're bill's"|title
'a\ufffdb c'.title()
"foo-bar (baz) [q] {w} <e>"|title
s.capitalize()
s.split(',')
s.split()
ws.split()
ws.split(none, 1)
' a b  c '.split(' ')
'a,b,c,d'.split(',', 2)
'a,b,c,d'.split(',', maxsplit=1)
'a,b,c,d'.rsplit(',', 2)
' a b c '.rsplit(None, 1)
''.split()
''.split(',')
'abc'.split('')
lines.splitlines()
lines.splitlines(true)
s.partition(', ')
s.rpartition('x')
ws.strip()
ws.lstrip()
ws.rstrip()
'xxabcxx'.strip('x')
'xyabcyx'.lstrip('xy')
'abc'.rstrip('')
'éaé'.strip('é')
s.startswith('Hell')
s.startswith(('x', 'He'))
s.startswith('ell', 1)
s.endswith('ld')
s.endswith(['ld'])
s.replace('l', 'L')
s.replace('l', 'L', 1)
s.replace('', '-')
''.replace('', 'x')
s.find('o')
s.rfind('o')
u.find('日')
s.find('zz')
s.index('zz')
s.count('l')
s.count('')
'-'.join(words)
'-'.join(xs)
''.join([])
'-'.join('abc')
'unhappy'.removeprefix('un')
'file.txt'.removesuffix('.txt')
'123'.isdigit()
'²'.isdigit()
'1.5'.isdigit()
'abc'.isalpha()
'a1'.isalnum()
'  '.isspace()
''.isspace()
'ABC'.isupper()
'Ab'.islower()
'Hello World'.istitle()
'abc'.center(9) ~ '|'
'abc'.ljust(5, '.') ~ '|'
'abc'.rjust(5) ~ '|'
'-42'.zfill(6)
'abc'.encode
'{} and {}'.format(1, 'b')
'{1} {0} {name}'.format(1, 2, name='n')
'{0[a]} {1.b}'.format({'a': 5}, {'b': 6})
'{:>6}|{:<6}|{:^6}|'.format('a', 'b', 'c')
'{:05d} {:+d} {:x} {:#x} {:,}'.format(42, 42, 255, 255, 1234567)
'{:.2f} {:8.3f} {:e} {:g} {:%}'.format(3.14159, 2.5, 12345.678, 0.0001, 0.25)
'{{}} {!r} {!s}'.format('x', 'y')
'{}'.format()
'{:o}'.format(2.5)
'{:d}'.format(2.5)
'{:s}'.format(2.5)
'{:c}'.format(2.5)
'{:x}'.format('a')
'{:=5}'.format('a')
'%s is %d years, %.1f%%' % ('Al', 30, 99.5)
'%s' % 'x'
'%s' % xs
'%r' % 'x'
'%(a)s-%(b)05d' % {'a': 1, 'b': 2}
'%5s|%-5s|%05d|%+d|%x|%X|%o|%e|%g' % ('a', 'b', 42, 42, 255, 255, 8, 12345.678, 0.00001)
'%d' % 'x'
'%d|%d|%s' % (3.7, -3.7, 3.7)
'{:d}'.format(3.7)
'%s %s' % ('a',)
'%s' % ('a', 'b')
'%c%c' % ('a', 98)
'"%s"'|format(s)
s|upper
none|upper
5|upper
u|lower
s|title
'hELLO wORLD'|capitalize
ws|trim
'xxaxx'|trim('x')
42|trim
s|length
u|length
d|length
5|length
(xs|map('string'))|length
s|reverse
xs|reverse|list
xs|reverse
u|reverse
s|first
''|first
xs|first
xs|last
[]|last
(xs|map('string'))|last
xs|join
xs|join(', ')
words|join('-')
rows|join(',', attribute='name')
'abc'|join('.')
5|join
xs|sort
words|sort
words|sort(case_sensitive=true)
words|sort(reverse=true)
rows|sort(attribute='age')|map(attribute='name')|join(',')
rows|sort(attribute='city,age')|map(attribute='name')|join(',')
[1, 'a']|sort
words|unique|list
words|unique(case_sensitive=true)|list
rows|unique(attribute='age')|map(attribute='name')|list
xs|min
xs|max
words|min
[]|max is defined
rows|max(attribute='age')
xs|sum
xs|sum(start=10)
rows|sum(attribute='age')
words|sum
xs|list
s|list
d|list
5|list
d|items|list
nothing|items|list
xs|items|list
d|dictsort
{'b': 1, 'A': 2}|dictsort
{'b': 1, 'A': 2}|dictsort(true)
{'b': 1, 'A': 2}|dictsort(by='value', reverse=true)
rows|map(attribute='name')|list
rows|map(attribute='ok')|list
rows|map(attribute='ok', default='-')|list
rows|map('length')|list
words|map('upper')|join(' ')
words|map('replace', 'p', 'P')|list
words|map('nosuch')|list
rows|selectattr('ok')|map(attribute='name')|list
rows|selectattr('ok', 'defined')|map(attribute='name')|list
rows|selectattr('age', 'equalto', 30)|map(attribute='name')|list
rows|selectattr('age', '>', 26)|list|length
rows|rejectattr('ok')|map(attribute='name')|list
rows|rejectattr('age', 'eq', 30)|map(attribute='name')|list
xs|select('odd')|list
xs|reject('odd')|list
xs|select|list
[0, 1, '', 'a', none]|select|list
[0, 1, '', 'a', none]|reject|list
xs|select('gt', 1)|list
xs|select('nosuch')|list
xs|select('odd') and 'generator is true'
(xs|select('gt', 99)) and 'generator is true'
(xs|select('gt', 99))|first is defined
nested|map(attribute='0')|list
nested|map(attribute='1.0')|list
rows|groupby('age')|length
rows|groupby('city')
(rows|groupby('city'))[0].grouper
(rows|groupby('city'))[1].list|map(attribute='name')|list
xs|batch(2)|list
xs|batch(2, 0)|list
range(7)|slice(3)|list
range(7)|slice(3, 'x')|list
s|replace('l', 'L')
s|replace('l', 'L', 2)
5|replace(5, 6)
s|string
5|string ~ none|string
'42'|int
'42.9'|int
' 42 '|int
'x'|int
'x'|int(9)
'1e400'|int(9)
'-1e400'|int(9)
'1e-400'|int(9)
'99999999999999999999x'|int(9)
'0x1A'|int(base=16)
'1010'|int(0, 2)
'1_000'|int
4.9|int
-4.9|int
none|int
true|int
nothing|int
'3.5'|float
'x'|float
'x'|float(1.5)
'1e3'|float
'inf'|float
'nan'|float
5|float
m|abs
-2.5|abs
'a'|abs
2.5|round
3.5|round
2.567|round(2)
2.675|round(2)
42.55|round(1, 'floor')
42.55|round(1, 'ceil')
1234|round(-2)
1250|round(-2)
15|round(-1)
25|round(-1)
1234.5|round(-2)
5|round(1, 'ceil')
2.5|round|int
'x'|round
s|default('q')
nothing|default('q')
nothing|default
none|default('q')
none|default('q', true)
''|d('q', boolean=true)
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, first=true, blank=true)
lines|indent('>>')
''|indent
5|indent
html|escape
html|e
html|safe
html|e|e
html|forceescape
(html|e) + '<b>'
'<b>' + (html|safe)
html|e ~ '<b>'
(html|safe) is escaped
"<b>x</b>\n <!-- c -->y"|striptags
s|urlencode
'a b/c?d=é&x'|urlencode
{'a b': 'c&d', 'e': 1}|urlencode
s|wordcount
u|wordcount
'foo bar baz qux'|truncate(9)
'foo bar baz qux'|truncate(9, true)
'foo bar baz qux'|truncate(11)
'foo bar baz qux'|truncate(11, false, '..', 0)
'abc'|center(9) ~ '|'
'abcd'|center(9) ~ '|'
123456789|filesizeformat
1024|filesizeformat(true)
1|filesizeformat
{'class': 'a', 'id': none, 'x': '<'}|xmlattr
d|tojson
d|tojson(indent=2)
d|tojson(ensure_ascii=true)
d|tojson(separators=(',', ':'))
d|tojson(indent=4, sort_keys=true)
d|tojson(separators=[',', ':'], sort_keys=true)
u|tojson
u|tojson(true)
html|tojson
'\x00\x1f\x7f\u2028"\\'|tojson
[1, 1.0, 1e20, -0.0, true, none, 'x', (1, 2), [], {}]|tojson
[[], {}, [1]]|tojson(indent=2)
{1: 'a', none: 'b', true: 'c', 2.5: 'd'}|tojson
{(1, 2): 'a'}|tojson
nothing|tojson
range(3)|tojson
(xs|map('string'))|tojson
[]|tojson(indent=2)
d|tojson(indent='--')
d.a|attr('c')
s|attr('upper')()
s is string
5 is string
5 is number
true is number
5 is integer
true is integer
5.0 is float
true is boolean
none is none
z is not none
d is mapping
xs is mapping
xs is sequence
s is sequence
d is sequence
5 is sequence
xs is iterable
5 is iterable
nothing is iterable
(xs|map('string')) is iterable
range is callable
s.upper is callable
5 is callable
nothing is defined
nothing is undefined
d.q is defined
d.q.r is defined
4 is even
5 is odd
9 is divisibleby 3
9 is divisibleby(4)
1.5 is even
'a' is even
1 is eq 1
1 is equalto(1)
2 is gt 1
2 is lessthan 1
2 is ge(2)
1 is in [1, 2]
1 is not in [1, 2]
'a' is in 'abc'
true is true
1 is true
false is false
none is sameas none
1 is sameas true
'abc' is lower
'ABC' is upper
'upper' is filter
'nosuch' is filter
'odd' is test
5 is nosuch
5|nosuch
'x' is string and 5 is number
not nothing is defined
'a' if s is string else 'b'
'tab\tnew\nline \'q\' \"d\" \\ \x41 \u00e9 \U0001F600 \101 \q'
'a' 'b' "c"
'\é'
[1, 2.0, 'x', none, true, [1], (1,), {'a': 1}]
{'a': 1, 2: 'b', none: [], 'a': 3}
['it\'s', "q\"q", 'both \'"', 'é\n\x00\u200b\U000e0001']
{}
[[]]
[1, 2,]
{'a': 1,}
range(3)
range(1, 10, 3)|list
range(5, 0, -2)|list
range(0)|list
range(1, 2, 0)
range('a')
range(3)[1]
range(2, 5).start
range(3) == range(0, 3)
range(100001)
dict(a=1, b=2)
dict([('a', 1), ('b', 2)])
dict({'a': 1}, b=2)
dict(1)
namespace(a=1).a
namespace(a=1)
namespace(a=1).b
namespace({'a': 1})['a']
namespace(_a=1)
raise_exception('custom words')
strftime_now('%Y-%m-%d %H:%M:%S %d %b %Y %A %j %% %-d')
strftime_now('%f|%Z|%z|%y')
strftime_now('')
strftime_now(5)
s.__class__
s.__class__.__name__
s._private
d.__len__
xs.__add__
messages|length
tools
documents
add_generation_prompt
bos_token
5()
s()
nothing()
s.nosuch()
s.upper(1)
s.replace('a')
s|trim('x', 'y')
s|trim(nope=1)
s|upper(*[])
dict(**{'a': 1})
range(*[1, 4])|list
'%s' % nothing
1.
1 2
(1
[1
{'a'
'open
1 +
a.
|upper
x is
not
5.5.5
1 if
@
1 <> 2
a b
"""

# Snippets with syntax that Limpid refuses, and the words of its error.
REFUSED_SYNTAX = {
    "7 // 2": "the operator '//'",
    "-7 // 2": "the operator '//'",
    "7 // -2": "the operator '//'",
    "-7.5 // 2": "the operator '//'",
    "2 ** 10": "the operator '**'",
    "2 ** -1": "the operator '**'",
    "2 ** 3 ** 2": "the operator '**'",
    "-2 ** 2": "the operator '**'",
    "1_000 + 0x1F + 0b101 + 0o17": "a number with a base or with '_'",
    "+3": "the operator '+' before an operand",
    "1 < 2 < 3": "a chain of comparisons",
    "1 < 3 < 2": "a chain of comparisons",
    "'{0[a]} {1.b}'.format({'a': 5}, {'b': 6})": "the format '{0[a]}'",
    "'{:>6}|{:<6}|{:^6}|'.format('a', 'b', 'c')": "the format '{:>6}'",
    "'{:05d} {:+d} {:x} {:#x} {:,}'.format(42, 42, 255, 255, 1234567)": "the format '{:05d}'",
    "'{:.2f} {:8.3f} {:e} {:g} {:%}'.format(3.14159, 2.5, 12345.678, 0.0001, 0.25)": "the format '{:.2f}'",
    "'{{}} {!r} {!s}'.format('x', 'y')": "the format '{!r}'",
    "'%s is %d years, %.1f%%' % ('Al', 30, 99.5)": "the format '%.'",
    "'%r' % 'x'": "the format '%r'",
    "'%(a)s-%(b)05d' % {'a': 1, 'b': 2}": "the format '%('",
    "'%5s|%-5s|%05d|%+d|%x|%X|%o|%e|%g' % ('a', 'b', 42, 42, 255, 255, 8, 12345.678, 0.00001)": "the format '%5'",
    "'%c%c' % ('a', 98)": "the format '%c'",
    "rows|sort(attribute='city,age')|map(attribute='name')|join(',')": "the filter 'sort' with several attributes",
    "'0x1A'|int(base=16)": "the filter 'int' with a base",
    "'1010'|int(0, 2)": "the filter 'int' with a base",
    "'1_000'|int": "the filter 'int' of a text with '_'",
    r"'tab\tnew\nline \'q\' \"d\" \\ \x41 \u00e9 \U0001F600 \101 \q'": "the escape '\\1'",
    r"'\é'": "the escape '\\…'",
    "namespace(a=1)": "printing a TemplateNamespace",
    "dict(**{'a': 1})": "a call with **",
    "{% for x in xs %}{{ loop }}{% endfor %}": "printing a LoopContext",
    "{% for x in nested recursive %}{% if x is iterable %}<{{ loop(x) }}>{% else %}{{ x }}@{{ loop.depth }}{% endif %}{% endfor %}": "a recursive loop",
    "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns }}": "printing a TemplateNamespace",
    "{% set x | upper | replace('B', 'c') %}block{% endset %}[{{ x }}]": "a filter of a set block",
    "{% macro m(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, x=4) }}": "'varargs' in a macro",
    "{% macro m(caller=none) %}{{ caller }}{% endmacro %}{{ m(1) }}{{ m() }}": "a parameter named 'caller'",
    "{% with a = 1, b = n %}{{ a }}{{ b }}{% endwith %}{{ a }}": "tag 'with'",
    "{% with a = 1, b = a %}{{ b }}{% endwith %}": "tag 'with'",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q }}": "tag 'with'",
    "{% with %}{% for j in [1] %}{{ n }}{% endfor %}{% set n = 2 %}{{ n }}{% endwith %}{{ n }}": "tag 'with'",
    "{% print 1, 'a' %}": "tag 'print'",
}
# Where Limpid's text is not jinja2's.
KNOWN_DIFFERENCES = {
    "{{ 'ΑΣ ΑΣΒ Σ'.lower() }}": "ασ ασβ σ",  # Python writes ς at the end of a word
}
