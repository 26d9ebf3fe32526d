import Ledger
import LedgerService
import Testing

@Suite struct ConfigurationTests {
    private func read(_ text: String) throws(ConfigurationError) -> Configuration {
        try Configuration(bytes: Array(text.utf8), path: "conf/subledger.json")
    }

    private func problems(_ text: String) -> [String] {
        let error = #expect(throws: ConfigurationError.self) {
            try Configuration(bytes: Array(text.utf8), path: "subledger.json")
        }
        return error?.problems.map { "\($0.field): \($0.message)" } ?? []
    }

    /// One app with Production and so many other fields.
    private func app(_ fields: String) -> String {
        "{\"apps\": [{\"bundle_id\": \"com.example.app\", \(fields)}]}"
    }

    @Test func aWholeConfigurationIsRead() throws {
        let configuration = try read(
            """
            {"database": "postgresql://db/ledger",
             "apps": [{"bundle_id": "com.example.app", "app_apple_id": 1234567890,
               "environments": ["Production", "Sandbox"],
               "anchors": ["certs/test.pem", "/etc/anchor.der"],
               "grace_period_days": 16, "grace_scope": "existing_paid_renewals",
               "clock_profile": "production",
               "products": {"gold.month": {"group": "20965663", "level": 1, "period": "1m"}},
               "access_policy": {"billing_retry_access": {"days": 7},
                 "missing_grace_date": "deny", "lapse_leeway_minutes": 30,
                 "refund_ends_access": false, "rescinded_consent_suspends": false}}]}
            """
        )
        let app = try #require(configuration.apps.first)
        #expect(configuration.database == "postgresql://db/ledger")
        #expect(app.bundleID == "com.example.app")
        #expect(app.appAppleID == 1_234_567_890)
        #expect(app.environments == [.production, .sandbox])
        #expect(app.anchors == ["conf/certs/test.pem", "/etc/anchor.der"])
        #expect(app.gracePeriodDays == 16)
        #expect(app.graceScope == .existingPaidRenewals)
        #expect(app.clockProfile == .production)
        #expect(
            app.products
                == ["gold.month": ProductRules(groupID: "20965663", level: 1, period: .oneMonth)]
        )
        #expect(
            app.accessPolicy
                == AccessPolicy(
                    billingRetryAccess: .days(7),
                    missingGraceDate: .deny,
                    lapseLeeway: .minutes(30),
                    refundEndsAccess: false,
                    rescindedConsentSuspends: false
                )
        )
    }

    @Test func productionNeedsTheAppsNumberAsANumber() {
        #expect(
            problems(app("\"app_apple_id\": null"))[0].hasPrefix("apps[0].app_apple_id: missing")
        )
        let asText = problems(app("\"app_apple_id\": \"123456789\""))
        #expect(
            asText == [
                "apps[0].app_apple_id: the text \"123456789\"; write the number without quotes: "
                    + "123456789"
            ]
        )
        let asBundle = problems(app("\"app_apple_id\": \"TEAM1.com.example.app\""))
        #expect(asBundle.count == 1)
        #expect(asBundle[0].contains("wanted is a whole number"))
        #expect(problems(app("\"app_apple_id\": 1.5")).count == 1)
        #expect(problems(app("\"app_apple_id\": -4")).count == 1)
    }

    @Test func sandboxAloneNeedsNoNumberAndTakesOne() throws {
        let without = try read(app("\"environments\": [\"Sandbox\"]"))
        #expect(without.apps[0].appAppleID == nil)
        let with = try read(app("\"environments\": [\"Sandbox\"], \"app_apple_id\": 5"))
        #expect(with.apps[0].appAppleID == 5)
    }

    @Test func anUnknownFieldIsRefusedWithTheOneThatWasMeant() {
        let sandbox = "\"environments\": [\"Sandbox\"]"
        #expect(
            problems(app("\(sandbox), \"grace_period_day\": 3")) == [
                "apps[0].grace_period_day: unknown field; did you mean \"grace_period_days\"?"
            ]
        )
        #expect(problems("{\"app\": []}") == ["app: unknown field; did you mean \"apps\"?"])
        #expect(
            problems(app("\(sandbox), \"products\": {\"p\": {\"lvl\": 1}}")).contains {
                $0.hasPrefix("apps[0].products[\"p\"].lvl: unknown field")
            }
        )
    }

    @Test func everyProblemOfAFileIsNamedAtOnce() {
        let found = problems(
            """
            {"apps": [{"bundle_id": "a", "environments": ["production"], "grace_period_days": 7,
              "grace_scope": "all", "products": {"p": {"group": 1, "level": 0, "period": "2w"}},
              "access_policy": {"billing_retry_access": "never", "lapse_leeway_minutes": -1}},
              {"bundle_id": "a", "environments": []}, 7]}
            """
        )
        let fields = found.map { String($0.prefix { $0 != " " }) }
        for field in [
            "apps[0].environments[0]:", "apps[0].grace_period_days:", "apps[0].grace_scope:",
            "apps[0].products[\"p\"].group:", "apps[0].products[\"p\"].level:",
            "apps[0].products[\"p\"].period:", "apps[0].access_policy.billing_retry_access:",
            "apps[0].access_policy.lapse_leeway_minutes:", "apps[1].environments:",
            "apps[1].bundle_id:", "apps[2]:",
        ] {
            #expect(fields.contains(field), "\(field) is not in \(found)")
        }
    }

    @Test(arguments: ["", "{", "{\"apps\": [}", "\u{FEFF}nonsense", "[1]"])
    func whatIsNoObjectIsRefused(text: String) {
        #expect(!problems(text).isEmpty)
    }

    @Test func aLongTextIsNeverShownSinceItMayBeASecret() {
        let secret = "postgresql://ledger:hunter2@db.example.com/ledger"
        let found = problems("{\"apps\": \"\(secret)\"}")
        #expect(found.count == 1)
        #expect(!found[0].contains("hunter2"))
    }

    @Test func aFileThatIsNotThereIsNamed() {
        let error = #expect(throws: InputError.self) {
            try Configuration(path: "/nonexistent/subledger.json")
        }
        #expect(error?.code == .notFound)
        #expect(error?.message.contains("/nonexistent/subledger.json") == true)
    }
}
