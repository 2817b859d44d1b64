"""Model services: thin parts above the readers, each of use on its own. Public names are in `stream`."""
