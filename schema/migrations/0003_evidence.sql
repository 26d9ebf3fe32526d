-- What was received, byte for byte, under the event's own key.

create table ledger.evidence (
    position bigint not null,
    app_id integer not null,
    codec smallint not null,
    stream text collate "C" not null,
    salt bytea not null,
    headers integer[] not null,
    cuts integer[] not null,
    payloads bytea[] not null,
    signatures bytea not null,
    constraint evidence_pkey primary key (stream, app_id, position),
    constraint evidence_codec_check check (codec between 0 and 255),
    constraint evidence_salt_check check (length(salt) = 16),
    constraint evidence_layers_check check (
        codec <> 0
        or cardinality(payloads) = cardinality(headers)
        and cardinality(cuts) = cardinality(headers) - 1
        and length(signatures) = cardinality(headers) * 64
    )
) partition by hash (stream);

comment on table ledger.evidence is
    'One row for each event: the received bytes, decomposed without loss. Never changes.';
comment on column ledger.evidence.codec is
    '0: a JWS decomposed, payloads uncompressed. 1: a JWS as received. 2: unsigned, as received.';
comment on column ledger.evidence.headers is
    'ledger.jws_header ids, the outer JWS first, then those nested in its payload, in order.';
comment on column ledger.evidence.cuts is
    'Where in the outer payload each nested JWS was cut out, in bytes of what is left.';
comment on column ledger.evidence.payloads is
    'The decoded payload of each layer; for codecs 1 and 2 one element, the received bytes.';
comment on column ledger.evidence.signatures is
    'The 64 bytes of each layer''s signature, one after another.';

do $$
begin
    for i in 0..31 loop
        execute format(
            'create table ledger.evidence_%s partition of ledger.evidence'
            ' for values with (modulus 32, remainder %s)',
            lpad(i::text, 2, '0'), i);
    end loop;
end
$$;

-- Total: what PostgreSQL cannot hold as text gives null, never an error. Parallel workers cannot
-- run it, since catching an error needs a subtransaction.
create function ledger.utf8_or_null(bytes bytea) returns text
language plpgsql immutable parallel unsafe strict as $$
begin
    return convert_from(bytes, 'UTF8');
exception when others then
    return null;
end
$$;

comment on function ledger.utf8_or_null(bytea) is
    'The bytes as text, or null where they are no UTF-8 or hold U+0000.';

create view ledger.evidence_text as
select
    evidence.position,
    evidence.app_id,
    evidence.stream,
    evidence.codec,
    layer.ordinality::integer as layer,
    ledger.utf8_or_null(layer.payload) as payload,
    case
        when ledger.utf8_or_null(layer.payload) is not null then null
        when position('\x00'::bytea in layer.payload) > 0 then 'holds U+0000'
        else 'not UTF-8'
    end as reason
from ledger.evidence
cross join lateral unnest(evidence.payloads) with ordinality as layer (payload, ordinality);

comment on view ledger.evidence_text is
    'One row for each layer of an event''s evidence, outer first; null has a reason.';
