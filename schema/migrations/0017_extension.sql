-- What operators say about extensions, as typed columns beside the event whose evidence says the
-- same: written in the append's own transaction, never changed. The fold keeps no text; it names
-- events, and the views join these rows.

alter table ledger.fact
    add column extension_request uuid,
    add column extension_detail integer;

create table ledger.extension_request (
    stream text collate "C" not null,
    app_id integer not null,
    request_identifier uuid not null,
    position bigint not null,
    kind text collate "C" not null,
    at timestamptz not null,
    days integer not null,
    reason_code integer not null,
    ticket text not null,
    justification text,
    internal_reason text,
    ticket_system text,
    ticket_url text,
    incident_id text,
    operator_authenticated text not null,
    operator_claimed text,
    on_behalf_of text,
    requester_role text,
    authn_method text not null,
    channel text collate "C" not null,
    client_ip text,
    session_id text,
    os_user text,
    host text,
    database_role text,
    service_identity text,
    idempotency_key text collate "C",
    state_before text,
    expires_before timestamptz,
    expires_before_position bigint,
    transaction_id text,
    web_order_line_item_id text,
    product_id text,
    storefronts text,
    owner uuid,
    ownership text,
    extensions_before_chain integer,
    extensions_before_owner integer,
    budget_rule_version integer,
    policy_version integer,
    fresh_status boolean not null,
    attempt_ineligible boolean not null,
    ineligible_rule text,
    again boolean not null,
    approval_rule text,
    binding text collate "C" not null,
    constraint extension_request_pkey primary key (stream, app_id, request_identifier),
    constraint extension_request_position_key unique (stream, app_id, position),
    constraint extension_request_binding_key
        unique (stream, app_id, request_identifier, operator_authenticated, binding),
    constraint extension_request_idempotency_key unique (stream, app_id, idempotency_key),
    constraint extension_request_kind_check
        check (kind in ('extension_requested', 'mass_extension_requested')),
    constraint extension_request_days_check check (days between 1 and 90),
    constraint extension_request_reason_check check (reason_code between 0 and 3),
    constraint extension_request_ticket_check check (length(ticket) between 1 and 200),
    constraint extension_request_channel_check check (channel in ('cli', 'http')),
    constraint extension_request_operator_check
        check (length(operator_authenticated) between 1 and 400)
);

comment on table ledger.extension_request is
    'One row for each request to extend a subscription or a whole product, refused ones too.';
comment on column ledger.extension_request.operator_authenticated is
    'Who asked, as known without their word: a token''s name, or database role, account and host.';
comment on column ledger.extension_request.operator_claimed is
    'Who asked, as they say.';
comment on column ledger.extension_request.approval_rule is
    'Why another operator must approve; null where none must.';
comment on column ledger.extension_request.binding is
    'SHA-256 of subscription, days, reason, ticket and end before: what an approval is for.';

create table ledger.extension_step (
    stream text collate "C" not null,
    app_id integer not null,
    position bigint not null,
    request_identifier uuid not null,
    kind text collate "C" not null,
    at timestamptz not null,
    operator_authenticated text,
    operator_claimed text,
    on_behalf_of text,
    requester_role text,
    authn_method text,
    channel text collate "C",
    client_ip text,
    session_id text,
    os_user text,
    host text,
    database_role text,
    requested_by text,
    binding text collate "C",
    rule text,
    note text,
    attempt integer,
    apple_key_id text,
    http_status integer,
    apple_error_code bigint,
    apple_error_message text,
    failure text,
    body_digest text collate "C",
    latency_ms bigint,
    success boolean,
    effective_date timestamptz,
    web_order_line_item_id text,
    resolution text,
    expires_read timestamptz,
    complete boolean,
    complete_date timestamptz,
    succeeded_count bigint,
    failed_count bigint,
    constraint extension_step_pkey primary key (stream, app_id, position),
    constraint extension_step_request_fkey foreign key (stream, app_id, request_identifier)
        references ledger.extension_request (stream, app_id, request_identifier),
    -- Four eyes: who approves is not who asked, and approves what was asked for.
    constraint extension_step_approval_fkey
        foreign key (stream, app_id, request_identifier, requested_by, binding)
        references ledger.extension_request
            (stream, app_id, request_identifier, operator_authenticated, binding),
    constraint extension_step_approval_check check (
        kind not in ('extension_approved', 'mass_extension_approved')
        or requested_by is not null and binding is not null
        and operator_authenticated is not null
        and lower(requested_by) <> lower(operator_authenticated)
    ),
    constraint extension_step_resolution_check
        check (resolution in ('extended', 'not_extended'))
);

comment on table ledger.extension_step is
    'One row for each step of a request to extend after it was asked for.';
comment on column ledger.extension_step.requested_by is
    'Who asked, as the request has it; only for an approval, which is refused for the same one.';
comment on column ledger.extension_step.body_digest is
    'SHA-256 of Apple''s answer, whose bytes are in the evidence of the event at this position.';

create index extension_request_by_ticket on ledger.extension_request (ticket);
create index extension_request_by_time on ledger.extension_request (at);

do $$
declare
    base text;
begin
    foreach base in array array['extension_request', 'extension_step'] loop
        execute format(
            'create trigger refuse_row before update or delete on ledger.%I'
            ' for each row execute function ledger.refuse_change()', base);
        execute format(
            'create trigger refuse_statement before update or delete or truncate on ledger.%I'
            ' for each statement execute function ledger.refuse_change()', base);
        execute format('alter table ledger.%I enable always trigger refuse_row', base);
        execute format('alter table ledger.%I enable always trigger refuse_statement', base);
        execute format('revoke update, delete, truncate on ledger.%I from current_user', base);
    end loop;
end
$$;
-- The foreign keys are checked with FOR KEY SHARE as the owner; a real UPDATE meets the trigger.
grant update on ledger.extension_request to current_user;

grant select, insert on ledger.extension_request, ledger.extension_step to :"appender";
grant select on ledger.extension_request, ledger.extension_step to :"projector", :"auditor";

-- Total, as utf8_or_null is: what is no JSON for PostgreSQL gives null.
create function ledger.json_or_null(content text) returns jsonb
language plpgsql immutable parallel unsafe strict as $$
begin
    return content::jsonb;
exception when others then
    return null;
end
$$;

comment on function ledger.json_or_null(text) is
    'The text as JSON, or null where it is none or holds what jsonb cannot.';
