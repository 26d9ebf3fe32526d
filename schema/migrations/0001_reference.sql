-- What events refer to: apps with their configuration, anchors and certificate headers.
-- Numbers are given by the program, never by a sequence; these tables are small and carry no stream.

create table ledger.app (
    app_id integer not null,
    bundle_id text collate "C" not null,
    environment text collate "C" not null,
    recorded_at timestamptz not null default now(),
    constraint app_pkey primary key (app_id),
    constraint app_bundle_id_environment_key unique (bundle_id, environment),
    constraint app_app_id_check check (app_id > 0),
    constraint app_bundle_id_check check (length(bundle_id) between 1 and 255),
    constraint app_environment_check check (length(environment) between 1 and 64)
);

comment on table ledger.app is
    'One row for each bundle id and environment that events were accepted for. Never changes.';

create table ledger.app_rules (
    app_id integer not null,
    version integer not null,
    app_apple_id bigint,
    grace_period_days integer,
    grace_scope text collate "C" not null,
    clock_profile text collate "C",
    operator text,
    ticket text,
    recorded_at timestamptz not null default now(),
    constraint app_rules_pkey primary key (app_id, version),
    constraint app_rules_app_id_fkey foreign key (app_id) references ledger.app (app_id),
    constraint app_rules_version_check check (version > 0),
    constraint app_rules_grace_period_days_check check (grace_period_days between 1 and 28),
    constraint app_rules_grace_scope_check
        check (grace_scope in ('all_renewals', 'existing_paid_renewals')),
    constraint app_rules_clock_profile_check check (clock_profile in ('production', 'sandbox'))
);

comment on table ledger.app_rules is
    'One row for each version of what configuration says of an app. The highest version counts.';

create table ledger.app_product (
    app_id integer not null,
    version integer not null,
    product_id text collate "C" not null,
    subscription_group_identifier text collate "C" not null,
    level integer not null,
    period text collate "C" not null,
    constraint app_product_pkey primary key (app_id, version, product_id),
    constraint app_product_app_rules_fkey
        foreign key (app_id, version) references ledger.app_rules (app_id, version),
    constraint app_product_level_check check (level > 0),
    constraint app_product_period_check check (period in ('1w', '1m', '2m', '3m', '6m', '1y'))
);

comment on table ledger.app_product is
    'One row for each product of one version of an app''s rules.';

create table ledger.access_policy (
    app_id integer not null,
    version integer not null,
    effective_from timestamptz not null,
    billing_retry_access text collate "C" not null,
    billing_retry_days integer,
    missing_grace_date text collate "C" not null,
    lapse_leeway_ms bigint,
    refund_ends_access boolean not null,
    rescinded_consent_suspends boolean not null,
    operator text,
    ticket text,
    recorded_at timestamptz not null default now(),
    constraint access_policy_pkey primary key (app_id, version),
    constraint access_policy_app_id_fkey foreign key (app_id) references ledger.app (app_id),
    constraint access_policy_version_check check (version > 0),
    constraint access_policy_billing_retry_access_check
        check (billing_retry_access in ('deny', 'until_grace_ends', 'days', 'allow')),
    constraint access_policy_billing_retry_days_check check (
        (billing_retry_access = 'days') = (billing_retry_days is not null)
        and coalesce(billing_retry_days, 1) between 1 and 60
    ),
    constraint access_policy_missing_grace_date_check
        check (missing_grace_date in ('estimate', 'deny')),
    constraint access_policy_lapse_leeway_ms_check check (lapse_leeway_ms >= 0)
);

comment on table ledger.access_policy is
    'One row for each version of an app''s access policy; it counts from effective_from on.';

create table ledger.anchor (
    fingerprint bytea not null,
    certificate bytea not null,
    recorded_at timestamptz not null default now(),
    constraint anchor_pkey primary key (fingerprint),
    constraint anchor_fingerprint_check check (fingerprint = sha256(certificate))
);

comment on table ledger.anchor is
    'One row for each trust anchor that ever vouched for a signature, as DER bytes.';

create table ledger.jws_header (
    header_id integer not null,
    digest bytea not null,
    header text collate "C" not null,
    anchor_fingerprint bytea not null,
    recorded_at timestamptz not null default now(),
    constraint jws_header_pkey primary key (header_id),
    constraint jws_header_digest_key unique (digest),
    constraint jws_header_anchor_fkey
        foreign key (anchor_fingerprint) references ledger.anchor (fingerprint),
    constraint jws_header_header_id_check check (header_id > 0),
    constraint jws_header_digest_check check (digest = sha256(convert_to(header, 'UTF8')))
);

comment on table ledger.jws_header is
    'One row for each distinct JWS header (algorithm and certificates), base64url as received.';
