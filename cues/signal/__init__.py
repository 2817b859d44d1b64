"""Operations on samples that every other room uses."""
