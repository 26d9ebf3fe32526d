-- What became of a quarantined document: its row in ledger.quarantine never changes, so the end of
-- it is a row of its own.

create table ledger.quarantine_resolution (
    stream text collate "C" not null,
    outcome text collate "C" not null,
    position bigint,
    operator text not null,
    ticket text,
    resolved_at timestamptz not null default now(),
    constraint quarantine_resolution_pkey primary key (stream),
    constraint quarantine_resolution_stream_fkey foreign key (stream)
        references ledger.quarantine (stream),
    constraint quarantine_resolution_outcome_check
        check (outcome in ('appended', 'duplicate', 'conflict', 'dismissed')),
    constraint quarantine_resolution_position_check
        check ((position is null) = (outcome = 'dismissed')),
    constraint quarantine_resolution_operator_check check (length(operator) between 1 and 200),
    constraint quarantine_resolution_ticket_check check (length(ticket) between 1 and 200)
);

comment on table ledger.quarantine_resolution is
    'One row for each quarantined document that somebody has dealt with, and how.';
comment on column ledger.quarantine_resolution.position is
    'The event that holds the document; for a conflict the event that was kept instead.';

create index quarantine_by_time on ledger.quarantine (recorded_at);

create trigger refuse_row before update or delete on ledger.quarantine_resolution
    for each row execute function ledger.refuse_change();
create trigger refuse_statement before update or delete or truncate
    on ledger.quarantine_resolution
    for each statement execute function ledger.refuse_change();
alter table ledger.quarantine_resolution enable always trigger refuse_row;
alter table ledger.quarantine_resolution enable always trigger refuse_statement;
revoke update, delete, truncate on ledger.quarantine_resolution from current_user;

-- The foreign key is checked with FOR KEY SHARE as the owner; a real UPDATE meets the trigger.
grant update on ledger.quarantine to current_user;

grant select, insert on ledger.quarantine_resolution to :"appender";
grant select on ledger.quarantine_resolution to :"projector", :"auditor";
