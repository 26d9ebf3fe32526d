import HTTP
import Ledger
import Testing

@testable import LedgerService

@Suite struct ServiceSettingsTests {
    private func file(_ section: String) throws -> ServiceSettings {
        let text = "{\"apps\": [], \"service\": \(section)}"
        return try Configuration(bytes: Array(text.utf8), path: "conf/subledger.json").service
    }

    private func problems(_ section: String) -> [String] {
        let error = #expect(throws: ConfigurationError.self) { try file(section) }
        return error?.problems.map { "\($0.field): \($0.message)" } ?? []
    }

    private func environment(_ values: [String: String]) throws -> ServiceSettings {
        try ServiceSettings(environment: { values[$0] })
    }

    @Test func aSectionIsReadAndItsPathsStartAtTheFile() throws {
        let settings = try file(
            """
            {"listen": "[::]:8443", "tls_certificate": "tls/chain.pem", "tls_key": "/run/key.pem",
             "trusted_proxies": ["10.0.0.0/8", "fd00::/8"], "apple_only": true,
             "drain_seconds": 0, "readers": 8, "quarantine_bytes_per_day": 1000,
             "public_url": "https://ledger.example.com", "silence_hours": {"Sandbox": 100}}
            """
        )
        #expect(settings.listen?.description == "[::]:8443")
        #expect(settings.tlsCertificate == "conf/tls/chain.pem")
        #expect(settings.tlsKey == "/run/key.pem")
        #expect(settings.trustedProxies?.map(\.description) == ["10.0.0.0/8", "fd00::/8"])
        #expect(settings.appleOnly == true)
        #expect(settings.drainSeconds == 0)
        #expect(settings.readers == 8)
        #expect(settings.quarantineBytesPerDay == 1000)
        #expect(settings.publicURL?.origin == "https://ledger.example.com:443")
        #expect(settings.silence?.sandboxHours == 100 && settings.silence?.productionHours == nil)
        #expect(try file("{}") == ServiceSettings())
    }

    @Test func everythingWrongInASectionIsNamed() {
        let found = problems(
            """
            {"listen": "localhost", "tls_key": "k.pem", "trusted_proxies": ["10.0.0.0/8", "home"],
             "apple_only": "yes", "drain_seconds": 601, "readers": 0, "lisen": ""}
            """
        )
        for part in [
            "service.listen: \"localhost\"", "service.tls_key: the certificate and the key",
            "service.trusted_proxies[1]: \"home\"", "service.apple_only: the text",
            "service.drain_seconds: 601", "service.readers: 0",
            "service.lisen: unknown field; did you mean \"listen\"?",
        ] {
            #expect(found.contains { $0.hasPrefix(part) }, "\(part) in \(found)")
        }
        #expect(found.count == 7)
    }

    @Test func everyVariableOfTheEnvironmentIsRead() throws {
        let values = [
            "SUBLEDGER_LISTEN": "0.0.0.0:80", "SUBLEDGER_TLS_CERTIFICATE": "c",
            "SUBLEDGER_TLS_KEY": "k", "SUBLEDGER_TRUSTED_PROXIES": "10.0.0.0/8, 192.0.2.7/32",
            "SUBLEDGER_APPLE_ONLY": "true", "SUBLEDGER_DRAIN_SECONDS": "5",
            "SUBLEDGER_READERS": "2", "SUBLEDGER_QUARANTINE_BYTES_DAY": "7",
            "SUBLEDGER_PUBLIC_URL": "https://ledger.example.com",
        ]
        #expect(values.keys.sorted() == ServiceSettings.variables.sorted())
        let settings = try environment(values)
        #expect(settings.listen?.description == "0.0.0.0:80")
        #expect(settings.trustedProxies?.count == 2)
        #expect(settings.appleOnly == true)
        #expect(settings.drainSeconds == 5)
        #expect(settings.readers == 2)
        #expect(settings.quarantineBytesPerDay == 7)
        #expect(settings.tlsCertificate == "c")
        #expect(settings.tlsKey == "k")
        // An empty variable is what compose makes of an unset one.
        #expect(try environment(values.mapValues { _ in "" }) == ServiceSettings())
    }

    @Test(arguments: [
        ("SUBLEDGER_LISTEN", "::1:80"), ("SUBLEDGER_LISTEN", "80"),
        ("SUBLEDGER_LISTEN", "127.0.0.1:65536"), ("SUBLEDGER_TRUSTED_PROXIES", "10.0.0.0/8,x"),
        ("SUBLEDGER_APPLE_ONLY", "1"), ("SUBLEDGER_DRAIN_SECONDS", "-1"),
        ("SUBLEDGER_READERS", "65"), ("SUBLEDGER_QUARANTINE_BYTES_DAY", "much"),
        ("SUBLEDGER_PUBLIC_URL", "ledger.example.com"),
    ])
    func aVariableThatMakesNoSenseIsNamedWithoutItsValue(_ name: String, _ value: String) {
        let error = #expect(throws: ServiceSettings.VariableError.self) {
            try ServiceSettings(environment: { $0 == name ? value : nil })
        }
        #expect(error?.variable == name)
        #expect(error?.description.contains("wanted is") == true)
    }

    @Test func theStrongerOneCountsAndTheWeakerOneFillsTheRest() throws {
        let file = try file(
            "{\"listen\": \"127.0.0.1:1\", \"readers\": 3, \"apple_only\": true,"
                + " \"tls_certificate\": \"/c\", \"tls_key\": \"/k\"}"
        )
        let variables = try environment([
            "SUBLEDGER_LISTEN": "127.0.0.1:2", "SUBLEDGER_APPLE_ONLY": "false",
        ])
        var words = ServiceSettings()
        words.listen = ListenAddress("127.0.0.1:3")
        let both = file.overridden(by: variables)
        #expect(both.listen?.port == 2)
        #expect(both.appleOnly == false)
        #expect(both.readers == 3)
        #expect(both.tlsKey == "/k")
        #expect(both.overridden(by: words).listen?.port == 3)
        // Half a pair is not completed from elsewhere.
        words.tlsCertificate = "/other"
        #expect(both.overridden(by: words).contradiction != nil)
    }
}
