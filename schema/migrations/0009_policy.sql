-- Where a version of an access policy comes from, and whether it was meant to reach back. A row
-- replaces all that earlier versions say from effective_from on.

alter table ledger.access_policy
    add column is_configured boolean not null default true,
    add column retroactive boolean not null default false;

comment on column ledger.access_policy.is_configured is
    'Whether the configuration file said so; else an operator did.';
comment on column ledger.access_policy.retroactive is
    'Whether it was recorded to change, on purpose, what was granted before.';
