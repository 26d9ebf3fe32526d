-- Nothing below is ever changed or deleted: not by privilege (0008), and not past these triggers.

-- Lists a table and its partitions; pg_partition_tree knows nothing of a table without any.
create function ledger.parts(base text) returns table (relation regclass)
language sql stable as $$
    select base::regclass
    union
    select tree.relid from pg_partition_tree(base::regclass) as tree
$$;

comment on function ledger.parts(text) is
    'A table with its partitions.';

-- Lists the physical parts of a table, each to be read on its own: its partitions, or itself.
create function ledger.slices(relation text)
returns table (slice integer, part text)
language sql stable as $$
    select (row_number() over (order by leaf.relation::text collate "C") - 1)::integer,
        leaf.relation::text
    from ledger.parts(relation) as leaf
    where not exists (select from pg_inherits where inhparent = leaf.relation)
$$;

comment on function ledger.slices(text) is
    'The parts of a table that can be read side by side; a stream never spans two of them.';

create function ledger.refuse_change() returns trigger
language plpgsql as $$
begin
    raise exception '% of % is refused: the log never changes', tg_op, tg_table_name
        using errcode = '2F002';
end
$$;

comment on function ledger.refuse_change() is
    'Refuses UPDATE, DELETE and TRUNCATE with SQLSTATE 2F002.';

-- Row triggers of a partitioned table are copied to its partitions, statement triggers are not.
-- "always" holds also where a session sets session_replication_role.
do $$
declare
    base text;
    part record;
begin
    foreach base in array array[
        'event', 'evidence', 'batch', 'conflict', 'quarantine', 'anchor', 'jws_header',
        'app', 'app_rules', 'app_product', 'access_policy', 'schema'
    ] loop
        execute format(
            'create trigger refuse_row before update or delete on ledger.%I'
            ' for each row execute function ledger.refuse_change()', base);
        for part in select relation from ledger.parts(format('ledger.%I', base)) loop
            execute format(
                'create trigger refuse_statement before update or delete or truncate on %s'
                ' for each statement execute function ledger.refuse_change()', part.relation);
            execute format('alter table %s enable always trigger refuse_row', part.relation);
            execute format(
                'alter table %s enable always trigger refuse_statement', part.relation);
        end loop;
    end loop;
end
$$;
