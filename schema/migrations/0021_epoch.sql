-- Positions are only the same position within an epoch. A new one is opened by hand after a restore
-- or a failover that may have lost the end of the log, whose positions are then given out again.

create table ledger.epoch (
    epoch bigint not null,
    cut_position bigint not null,
    server_identifier text collate "C" not null,
    timeline bigint not null,
    opened_at timestamptz not null default now(),
    operator text not null,
    why text not null,
    constraint epoch_pkey primary key (epoch),
    constraint epoch_epoch_check check (epoch > 0),
    constraint epoch_cut_position_check check (cut_position >= 0),
    constraint epoch_operator_check check (length(operator) between 1 and 200),
    constraint epoch_why_check check (length(why) between 1 and 1000)
);

comment on table ledger.epoch is
    'One row for each epoch of the log; the highest is the present one. Never changes.';
comment on column ledger.epoch.epoch is
    'The first is 1; a later one is the second since 1970 in which it was opened, so that a restore '
    'of an older backup never gives a number again.';
comment on column ledger.epoch.cut_position is
    'The last position that the epoch shares with the one before: what came after it may be lost.';
comment on column ledger.epoch.server_identifier is
    'The system identifier of the server that the epoch was opened on.';
comment on column ledger.epoch.timeline is
    'The timeline of its write-ahead log; a promotion or a recovery to a point in time begins one.';

-- A standby that replays this has the row of its primary, which is the same server to it.
insert into ledger.epoch (epoch, cut_position, server_identifier, timeline, operator, why)
select 1, 0, system_identifier::text,
    ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint,
    session_user, 'the log was made here, or first knew of epochs'
from pg_control_system();

create trigger refuse_row before update or delete on ledger.epoch
    for each row execute function ledger.refuse_change();
create trigger refuse_statement before update or delete or truncate on ledger.epoch
    for each statement execute function ledger.refuse_change();
alter table ledger.epoch enable always trigger refuse_row;
alter table ledger.epoch enable always trigger refuse_statement;
revoke update, delete, truncate on ledger.epoch from current_user;

grant select, insert on ledger.epoch to :"appender";
grant select on ledger.epoch to :"projector", :"reader", :"auditor";
