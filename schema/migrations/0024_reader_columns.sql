-- A reader sees what an app's rules and policies are and what was refused, but neither who set them on
-- which ticket nor who sent what was refused: that is the auditor's.

revoke select on ledger.app_rules, ledger.access_policy, ledger.refusal from :"reader";

grant select (app_id, version, app_apple_id, grace_period_days, grace_scope, clock_profile, recorded_at)
    on ledger.app_rules to :"reader";
grant select (app_id, version, effective_from, billing_retry_access, billing_retry_days,
        missing_grace_date, lapse_leeway_ms, refund_ends_access, rescinded_consent_suspends,
        recorded_at, is_configured, retroactive)
    on ledger.access_policy to :"reader";
grant select (refusal_id, refused_at, reason, size_bytes, digest, notification_type,
        notification_uuid, bundle_id, environment)
    on ledger.refusal to :"reader";
