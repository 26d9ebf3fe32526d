-- A notification that was posted in another body than {"signedPayload":"…"}: what stood around the
-- signed text, so that it can be posted on byte for byte. Apple's bodies need none of it.

alter table ledger.evidence add column posted bytea[];

-- "not valid" holds for every new row, and does not read those that are there: they have none.
alter table ledger.evidence
    add constraint evidence_posted_check check (cardinality(posted) between 1 and 2) not valid;

comment on column ledger.evidence.posted is
    'What stood before and after the signed text in the body as posted, or that body whole; null for '
    'the body that Apple posts, and for what was not posted. Nobody signed it.';
