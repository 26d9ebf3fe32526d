-- What is remembered of asking Apple: what was read unchanged, how far each list was read, what
-- Apple says of its own deliveries, and which program is at it.

comment on column ledger.evidence.codec is
    '0: a JWS decomposed, payloads uncompressed. 1: a JWS as received. 2: unsigned, as received. '
    '3: a response of Apple''s, its signed texts decomposed.';
comment on column ledger.evidence.cuts is
    'Where in the outer payload each nested JWS was cut out, in bytes of what is left. For codec 3 '
    'and each signed text: where in the body, how many it holds, and where in its own payload.';

alter table ledger.poll
    add column unchanged bigint not null default 0,
    add column outcome text collate "C",
    add column revision text collate "C";

comment on column ledger.poll.unchanged is
    'How many facts were read that the log had already; they are not appended again.';
comment on column ledger.poll.outcome is
    'How the last question ended: ok, or Apple''s number, or another word for what was wrong.';
comment on column ledger.poll.revision is
    'From where Apple is asked on in a list of transactions.';

create table ledger.history_window (
    app_id integer not null,
    only_failures boolean not null,
    window_from timestamptz not null,
    window_to timestamptz not null,
    completed_at timestamptz not null default now(),
    constraint history_window_pkey primary key (app_id, only_failures, window_from),
    constraint history_window_app_id_fkey foreign key (app_id) references ledger.app (app_id),
    constraint history_window_order_check check (window_from < window_to)
);

comment on table ledger.history_window is
    'One row for each span of time whose notification history was read to its end.';

create table ledger.send_attempt (
    stream text collate "C" not null,
    app_id integer not null,
    notification_uuid text collate "C" not null,
    attempted_at timestamptz not null,
    result text collate "C" not null,
    notification_type text collate "C",
    recorded_at timestamptz not null default now(),
    constraint send_attempt_pkey
        primary key (stream, app_id, notification_uuid, attempted_at),
    constraint send_attempt_result_check check (length(result) between 1 and 255)
);

comment on table ledger.send_attempt is
    'One row for each time that Apple says it sent us a notification, and how that ended.';

create index send_attempt_by_time on ledger.send_attempt (attempted_at);

create table ledger.turn (
    work text collate "C" not null,
    holder text collate "C" not null,
    until timestamptz not null,
    constraint turn_pkey primary key (work)
);

comment on table ledger.turn is
    'One row for each kind of background work: which program does it, and until when it says so.';

grant update on ledger.app to current_user;

grant select, insert, update, delete on ledger.history_window to :"appender";
grant select, insert on ledger.send_attempt to :"appender";
grant select, insert, update on ledger.turn to :"appender";
grant select on ledger.history_window, ledger.send_attempt, ledger.turn
    to :"projector", :"auditor";
grant select on ledger.history_window, ledger.send_attempt, ledger.poll to :"reader";
