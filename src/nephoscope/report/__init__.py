"""Renders blocks of text, tables and charts as HTML, Markdown and terminal text."""
