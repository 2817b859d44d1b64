"""From a spec to samples. Read `spec` (a cue as data), `catalog` (the built-in ones), `render`; then `motifs`."""
