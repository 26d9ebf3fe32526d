-- What the service keeps beside the log: who may ask it, and what it refused.

create table ledger.api_token (
    token_id text collate "C" not null,
    digest bytea not null,
    role text collate "C" not null,
    name text not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    constraint api_token_pkey primary key (token_id),
    constraint api_token_id_check check (token_id ~ '^[0-9a-f]{12}$'),
    constraint api_token_digest_check check (octet_length(digest) = 32),
    constraint api_token_role_check check (role in ('reader', 'operator', 'auditor')),
    constraint api_token_name_check check (length(name) between 1 and 200),
    constraint api_token_created_by_check check (length(created_by) between 1 and 200)
);

comment on table ledger.api_token is
    'One row for each bearer token that was ever made. The token itself is nowhere.';
comment on column ledger.api_token.digest is
    'SHA-256 of the token, which is random enough that nothing slower is needed.';

create table ledger.api_token_revocation (
    token_id text collate "C" not null,
    revoked_by text not null,
    revoked_at timestamptz not null default now(),
    constraint api_token_revocation_pkey primary key (token_id),
    constraint api_token_revocation_token_fkey foreign key (token_id)
        references ledger.api_token (token_id),
    constraint api_token_revocation_by_check check (length(revoked_by) between 1 and 200)
);

comment on table ledger.api_token_revocation is
    'One row for each token that no longer opens anything, and who said so.';

-- Both say who could do what and when, so they are kept like the log.
do $$
declare
    base text;
begin
    foreach base in array array['api_token', 'api_token_revocation'] loop
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
-- The foreign key is checked with FOR KEY SHARE as the owner; a real UPDATE meets the trigger.
grant update on ledger.api_token to current_user;

grant select, insert on ledger.api_token, ledger.api_token_revocation to :"appender";
grant select on ledger.api_token, ledger.api_token_revocation to :"auditor";

-- No evidence and bounded in number: it tells of deliveries that were turned away. What it says
-- of the content nobody vouches for.
create table ledger.refusal (
    refusal_id uuid not null default gen_random_uuid(),
    refused_at timestamptz not null default now(),
    reason text collate "C" not null,
    size_bytes bigint not null,
    digest bytea,
    peer text,
    notification_type text,
    notification_uuid text,
    bundle_id text,
    environment text,
    constraint refusal_pkey primary key (refusal_id),
    constraint refusal_digest_check check (octet_length(digest) = 32)
);

create index refusal_by_time on ledger.refusal (refused_at, refusal_id);

comment on table ledger.refusal is
    'One row for each of the latest deliveries that were refused; the oldest rows are removed.';
comment on column ledger.refusal.digest is
    'SHA-256 of the body; null where the body was not read to its end.';
comment on column ledger.refusal.notification_uuid is
    'What the body claimed, as the other columns after it: unverified.';

grant select, insert, delete on ledger.refusal to :"appender";
grant select on ledger.refusal to :"projector", :"reader", :"auditor";
