"""Model servers on tape: recordings of what real servers streamed, and a server that plays them back over HTTP."""
