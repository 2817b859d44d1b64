"""The sound board: one page with every cue to hear and to see. Pictures need numpy alone, the page needs jinja2."""
