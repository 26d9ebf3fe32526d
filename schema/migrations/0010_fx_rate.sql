-- Exchange rates for reports. Rates are only ever added; of one day and pair the highest version
-- counts, so what a report said can be told again from the versions of its time.

create table ledger.fx_rate (
    rate_date date not null,
    from_currency text collate "C" not null,
    to_currency text collate "C" not null,
    version integer not null,
    rate numeric not null,
    recorded_at timestamptz not null default now(),
    constraint fx_rate_pkey primary key (from_currency, to_currency, rate_date, version),
    constraint fx_rate_from_currency_check check (from_currency ~ '^[A-Z]{3}$'),
    constraint fx_rate_to_currency_check check (to_currency ~ '^[A-Z]{3}$'),
    constraint fx_rate_currencies_check check (from_currency <> to_currency),
    constraint fx_rate_version_check check (version > 0),
    constraint fx_rate_rate_check check (rate > 0 and rate < 1e12 and scale(rate) <= 18)
);

comment on table ledger.fx_rate is
    'One row for each version of an exchange rate: 1 from_currency is worth so many to_currency.';

create trigger refuse_row before update or delete on ledger.fx_rate
    for each row execute function ledger.refuse_change();
create trigger refuse_statement before update or delete or truncate on ledger.fx_rate
    for each statement execute function ledger.refuse_change();
alter table ledger.fx_rate enable always trigger refuse_row;
alter table ledger.fx_rate enable always trigger refuse_statement;
revoke update, delete, truncate on ledger.fx_rate from current_user;

grant select, insert on ledger.fx_rate to :"appender";
grant select on ledger.fx_rate to :"projector", :"reader", :"auditor";

-- No rate is made up: neither by turning one round nor by going over a third currency.
create function ledger.fx_rate_at(from_currency text, to_currency text, day date) returns numeric
language plpgsql stable parallel safe as $$
declare
    found_rate numeric;
begin
    if fx_rate_at.from_currency = fx_rate_at.to_currency then
        return 1;
    end if;
    select r.rate into found_rate
    from ledger.fx_rate r
    where r.from_currency = fx_rate_at.from_currency
        and r.to_currency = fx_rate_at.to_currency
        and r.rate_date <= fx_rate_at.day
        and r.rate_date > fx_rate_at.day - 31
    order by r.rate_date desc, r.version desc
    limit 1;
    if found_rate is null then
        raise exception 'no exchange rate from % to % of % or the 30 days before',
            coalesce(fx_rate_at.from_currency, 'an unknown currency'), fx_rate_at.to_currency,
            fx_rate_at.day
            using errcode = 'no_data_found', hint = 'subledger fx import FILE';
    end if;
    return found_rate;
end
$$;

comment on function ledger.fx_rate_at(text, text, date) is
        'The newest version of the rate of a day, or of the last of the 30 days before that has '
        'one; an error where there is none.';
