"""Contradictions within what a command says: figures against their interval, counts, words, units.

One checker for every JSON document (`of_document`), every text on a terminal or in Markdown
(`of_text`) and every HTML page (`of_page`). Each returns the contradictions as sentences; an empty
list is right. The rules know no command: a new document or page is checked as it comes.
"""

from tests.contradictions.documents import of_document as of_document
from tests.contradictions.pages import of_page as of_page
from tests.contradictions.texts import of_text as of_text
