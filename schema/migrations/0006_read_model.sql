-- The frame that every read model stands in; the models' own tables come with the models.
-- The projector owns the schema, since it makes and drops the generations' partitions.

set local role :"projector";

create table read_model.generation (
    projection text collate "C" not null,
    generation integer not null,
    version integer not null,
    decoder smallint not null,
    state text collate "C" not null,
    name text collate "C",
    from_position bigint not null,
    known_to_position bigint,
    events bigint not null default 0,
    subscriptions bigint not null default 0,
    started_at timestamptz not null default now(),
    finished_at timestamptz,
    constraint generation_pkey primary key (projection, generation),
    constraint generation_generation_check check (generation > 0),
    constraint generation_state_check
        check (state in ('building', 'live', 'retired', 'kept', 'dropped'))
);

comment on table read_model.generation is
    'One row for each time a read model was built from the log.';

create table read_model.current (
    projection text collate "C" not null,
    generation integer not null,
    version integer not null,
    decoder smallint not null,
    swapped_at timestamptz not null default now(),
    constraint current_pkey primary key (projection)
);

comment on table read_model.current is
    'One row for each read model: the generation that its views show. A swap is one UPDATE of it.';

create table read_model.claim (
    stream text collate "C" not null,
    app_id integer not null,
    constraint claim_pkey primary key (stream, app_id)
);

comment on table read_model.claim is
    'One row for each subscription that was ever folded; a projector locks it while it folds.';

create table read_model.parked (
    stream text collate "C" not null,
    app_id integer not null,
    position bigint not null,
    error text not null,
    parked_at timestamptz not null default now(),
    constraint parked_pkey primary key (stream, app_id)
);

comment on table read_model.parked is
    'One row for each subscription that could not be folded, with the reason.';
