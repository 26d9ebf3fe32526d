-- What has to be there before the first migration: the schemas, the list of migrations and the
-- row that one migrating program locks.
create schema ledger authorization :"owner";
create schema read_model authorization :"projector";
set local role :"owner";

create table ledger.schema (
    component text collate "C" not null,
    number integer not null,
    name text collate "C" not null,
    checksum bytea not null,
    serves text not null,
    applied_at timestamptz not null default now(),
    constraint schema_pkey primary key (component, number),
    constraint schema_number_check check (number > 0),
    constraint schema_checksum_check check (length(checksum) = 32)
);

comment on table ledger.schema is
    'One row for each migration that was applied, with the programs it serves.';

create table ledger.schema_lock (
    one boolean not null default true,
    constraint schema_lock_pkey primary key (one),
    constraint schema_lock_one_check check (one)
);

comment on table ledger.schema_lock is
    'The one row that a migrating program holds, so that only one migrates at a time.';

insert into ledger.schema_lock (one) values (true);
