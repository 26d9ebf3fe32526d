-- Who may do what. The owner keeps no right to change the log either, and could only give it back
-- to itself; the triggers stand behind that.

do $$
declare
    base text;
    part record;
begin
    foreach base in array array[
        'event', 'evidence', 'batch', 'conflict', 'quarantine', 'anchor', 'jws_header',
        'app', 'app_rules', 'app_product', 'access_policy', 'schema'
    ] loop
        for part in select relation from ledger.parts(format('ledger.%I', base)) loop
            execute format(
                'revoke update, delete, truncate on %s from current_user', part.relation);
        end loop;
    end loop;
end
$$;

-- A foreign key is checked as the owner with FOR KEY SHARE, which asks for this right; a real
-- UPDATE meets the trigger.
grant update on ledger.app, ledger.app_rules, ledger.anchor to current_user;

grant usage on schema ledger
    to :"appender", :"projector", :"reader", :"auditor";

-- The appender only inserts, and moves the head.
grant select, insert on
    ledger.event, ledger.evidence, ledger.fact, ledger.batch, ledger.mark, ledger.conflict,
    ledger.quarantine, ledger.anchor, ledger.jws_header, ledger.app, ledger.app_rules,
    ledger.app_product, ledger.access_policy
    to :"appender";
grant select, update on ledger.head to :"appender";
grant select, insert, update on ledger.poll to :"appender";
grant select on ledger.schema to :"appender";

-- The projector reads the log and takes marks away; the read models are its own.
grant select on all tables in schema ledger to :"projector", :"auditor";
grant delete on ledger.mark to :"projector";

-- A reader sees read models, what they are about and how far they lag; never evidence.
grant select on
    ledger.app, ledger.app_rules, ledger.app_product, ledger.access_policy, ledger.head,
    ledger.mark, ledger.schema
    to :"reader";

set local role :"projector";
grant usage on schema read_model to :"appender", :"reader", :"auditor";
grant select on all tables in schema read_model to :"reader", :"auditor";
alter default privileges in schema read_model
    grant select on tables to :"reader", :"auditor";
