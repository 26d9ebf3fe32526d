-- The tables of the read model "entitlement". Each is partitioned by generation: a rebuild fills
-- partitions beside the live ones. A state is stored as its word, for psql.

set local role :"projector";

create table read_model.subscription (
    generation integer not null,
    app_id integer not null,
    stream text collate "C" not null,
    original_purchase_date timestamptz,
    product_id text,
    subscription_group_identifier text,
    level integer,
    ownership text,
    app_account_token uuid,
    owner_since timestamptz,
    app_transaction_id text,
    previous_original_transaction_id text,
    transaction_id text,
    web_order_line_item_id text,
    transaction_signed_at timestamptz,
    purchase_date timestamptz,
    expires_date timestamptz,
    quantity integer,
    price bigint,
    currency text,
    storefront text,
    billing_plan_type text,
    commitment_expires_date timestamptz,
    renewal_signed_at timestamptz,
    auto_renew_status integer,
    auto_renew_product_id text,
    is_in_billing_retry_period boolean,
    grace_period_expires_date timestamptz,
    expiration_intent integer,
    price_increase_status integer,
    renewal_date timestamptz,
    renewal_price bigint,
    renewal_currency text,
    renewal_quantity integer,
    commitment_auto_renew_status integer,
    status integer,
    last_signed_at timestamptz,
    anomalies text[] not null,
    known_to_position bigint not null,
    refund_requested_at timestamptz,
    refund_answer_by timestamptz,
    refund_decision text,
    primary key (stream, app_id, generation)
) partition by list (generation);

comment on table read_model.subscription is
    'One row for each subscription and generation: what is known of it apart from any instant.';
comment on column read_model.subscription.refund_requested_at is
    'When Apple first asked about the refund that the customer wished for last; null for none.';
comment on column read_model.subscription.refund_answer_by is
    'Twelve hours after Apple last asked about it.';
comment on column read_model.subscription.refund_decision is
    'What became of it: declined or refunded; null while nothing is known.';

create table read_model.entitlement_interval (
    generation integer not null,
    app_id integer not null,
    stream text collate "C" not null,
    valid_from timestamptz not null,
    valid_until timestamptz not null,
    state text not null,
    cause text,
    state_from timestamptz not null,
    state_until timestamptz not null,
    entitled_apple boolean not null,
    entitled boolean not null,
    access_until_apple timestamptz,
    access_until timestamptz,
    policy_version integer not null,
    product_id text,
    level integer,
    transaction_id text,
    expires_date timestamptz,
    grace_period_expires_date timestamptz,
    offer text not null,
    renewal_intent text not null,
    pending_product_id text,
    price_consent text not null,
    ownership text not null,
    price bigint,
    currency text,
    confidence text not null,
    has_billing_trouble boolean not null,
    positions bigint[] not null,
    constraint entitlement_interval_is_half_open check (valid_from < valid_until),
    primary key (stream, app_id, valid_from, generation)
) partition by list (generation);

comment on table read_model.entitlement_interval is
    'One row for each stretch [valid_from, valid_until) of a subscription in which nothing changes.';

create table read_model.subscription_owner (
    generation integer not null,
    app_id integer not null,
    stream text collate "C" not null,
    valid_from timestamptz not null,
    valid_until timestamptz not null,
    app_account_token uuid not null,
    position bigint not null,
    is_linked boolean not null,
    constraint subscription_owner_is_half_open check (valid_from < valid_until),
    primary key (stream, app_id, valid_from, generation)
) partition by list (generation);

comment on table read_model.subscription_owner is
    'Who owned a subscription from when to when. Intervals are split where the owner changes.';

create index subscription_owner_by_token
    on read_model.subscription_owner (app_account_token);
create index subscription_by_app_transaction
    on read_model.subscription (app_transaction_id) where app_transaction_id is not null;

-- The first generation. Version 0 belongs to no program: the one that folds first takes it over.
create table read_model.subscription_g1
    partition of read_model.subscription for values in (1);
create table read_model.entitlement_interval_g1
    partition of read_model.entitlement_interval for values in (1);
create table read_model.subscription_owner_g1
    partition of read_model.subscription_owner for values in (1);

alter table read_model.subscription_g1 alter column generation set default 1;
alter table read_model.entitlement_interval_g1 alter column generation set default 1;
alter table read_model.subscription_owner_g1 alter column generation set default 1;

insert into read_model.generation
    (projection, generation, version, decoder, state, from_position, finished_at)
values ('entitlement', 1, 0, 0, 'live', 0, now());

insert into read_model.current (projection, generation, version, decoder)
values ('entitlement', 1, 0, 0);
