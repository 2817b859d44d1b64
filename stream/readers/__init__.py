"""From what a model server sends to events: the readers and the parts that they share."""
