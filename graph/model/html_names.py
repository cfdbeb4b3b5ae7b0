"""Names of elements that make a tag HTML: those of the living standard, the obsolete ones, and those of SVG and MathML that are no words."""

from __future__ import annotations

_ELEMENTS = """
a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink blockquote body br button canvas
caption center cite code col colgroup command content data datalist dd del details dfn dialog dir div dl dt element em embed fencedframe
fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe image img input ins
isindex kbd keygen label legend li link listing main map mark marquee math menu menuitem meta meter multicol nav nobr noembed noframes
noscript object ol optgroup option output p param picture plaintext portal pre progress q rb rp rt rtc ruby s samp script search section
select shadow slot small source spacer span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead time
title tr track tt u ul var video wbr xmp foreignobject circle ellipse g path polygon polyline rect text tspan use
annotation-xml mglyph mi mn mo ms mtext
"""
_SWALLOWING = "iframe noembed noframes noscript plaintext script select style svg math template textarea title xmp"

ELEMENTS = frozenset(_ELEMENTS.split())

SWALLOWING = frozenset(_SWALLOWING.split())
"""Elements that take what follows them out of the page, or run it: refused in any writing."""
