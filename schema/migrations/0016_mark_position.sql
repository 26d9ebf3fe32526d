-- What is appended is marked at the end of this index, so a projector finds it without going over
-- what is left in the other index of marks long gone, as long as an old snapshot may still see them.

create index mark_position_idx on ledger.mark (position);
