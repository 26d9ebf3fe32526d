-- What was known at an instant or a position is folded from a prefix of the log. These indexes find
-- the end of the prefix, and what belongs to an owner by events that later ones may have overruled.

create index batch_by_time on ledger.batch (recorded_at, last_position);

create index fact_by_owner
    on ledger.fact (app_account_token) where app_account_token is not null;
create index fact_by_link
    on ledger.fact (linked_owner) where linked_owner is not null;
create index fact_by_previous
    on ledger.fact (previous_original_transaction_id)
    where previous_original_transaction_id is not null;
-- The transaction names the customer in nearly every row; then fact_by_customer finds it.
create index fact_by_renewal_customer
    on ledger.fact (renewal_app_transaction_id)
    where renewal_app_transaction_id is not null and app_transaction_id is null;

-- `subledger rebuild --known-at … --into NAME` makes a schema of that name. Where who migrates may not
-- give that right away, the command says what a DBA is to grant.
set local role none;
do $$
begin
    execute format('grant create on database %I to %I', current_database(),
        (select pg_get_userbyid(nspowner) from pg_namespace where nspname = 'read_model'));
exception
    when insufficient_privilege then
        raise notice 'the projector may not make schemas in this database';
end
$$;

set local role :"projector";

create table read_model.kept (
    name text collate "C" not null,
    known_at timestamptz,
    known_to_position bigint not null,
    rules_recorded_by timestamptz,
    decoder smallint not null,
    events bigint not null default 0,
    subscriptions bigint not null default 0,
    started_at timestamptz not null default now(),
    finished_at timestamptz,
    constraint kept_pkey primary key (name)
);

comment on table read_model.kept is
    'One row for each schema with read models as they were known then; unfinished without finished_at.';
