package import HTTP

/// Where a service listens.
package struct ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// The IPv4 or IPv6 address.
    package var address: IPAddress
    /// The port; 0 takes any that is free.
    package var port: UInt16

    /// Takes an address and a port.
    package init(address: IPAddress, port: UInt16) {
        self.address = address
        self.port = port
    }

    /// Reads `127.0.0.1:8080` or `[::]:8080`; nil for anything else.
    package init?(_ text: String) {
        guard let colon = text.lastIndex(of: ":"),
            let port = UInt16(text[text.index(after: colon)...])
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            // An IPv6 address whose last group would be taken for the port.
            return nil
        }
        guard let address = IPAddress(host) else { return nil }
        self.init(address: address, port: port)
    }

    /// The text that `init` reads.
    package var description: String {
        address.isIPv4 ? "\(address):\(port)" : "[\(address)]:\(port)"
    }
}

/// How `serve` runs: what the configuration file, the environment and the command line say of it.
///
/// What is nil is not said. `overridden(by:)` puts one over the other: the command line is stronger
/// than the environment, which is stronger than the file.
package struct ServiceSettings: Hashable, Sendable {
    /// Where to listen.
    package var listen: ListenAddress?
    /// The PEM file with the certificate chain, for TLS here.
    package var tlsCertificate: String?
    /// The PEM file with its private key.
    package var tlsKey: String?
    /// The networks whose `X-Forwarded-For` is believed.
    package var trustedProxies: [AddressRange]?
    /// Whether only Apple's network may deliver.
    package var appleOnly: Bool?
    /// How long requests may take after SIGTERM.
    package var drainSeconds: Int64?
    /// How many questions are answered at once.
    package var readers: Int64?
    /// How many bytes may be quarantined in a day.
    package var quarantineBytesPerDay: Int64?
    /// Where Apple reaches it: what stands before `/v1/notifications`.
    package var publicURL: HTTPURL?
    /// For how long no notification may come; said in the file alone.
    package var silence: Silence.Limits?

    /// Where it listens when nobody says anything.
    package static let listenDefault = ListenAddress(address: .loopback, port: 8080)
    /// How long requests may take after SIGTERM when nobody says anything.
    package static let drainSecondsDefault: Int64 = 20
    /// How many questions are answered at once when nobody says anything.
    package static let readersDefault: Int64 = 4
    /// How many bytes may be quarantined in a day when nobody says anything.
    package static let quarantineBytesPerDayDefault: Int64 = 256 << 20

    static let drainSecondsRange: ClosedRange<Int64> = 0...600
    static let readersRange: ClosedRange<Int64> = 1...64
    static let quarantineRange: ClosedRange<Int64> = 0...(1 << 40)

    /// Says nothing.
    package init() {}

    /// What is said here, and where nothing is, what the weaker ones say.
    ///
    /// Certificate and key belong together, so they are taken from the same place.
    package func overridden(by stronger: ServiceSettings) -> ServiceSettings {
        var result = self
        if stronger.tlsCertificate != nil || stronger.tlsKey != nil {
            result.tlsCertificate = stronger.tlsCertificate
            result.tlsKey = stronger.tlsKey
        }
        result.listen = stronger.listen ?? listen
        result.trustedProxies = stronger.trustedProxies ?? trustedProxies
        result.appleOnly = stronger.appleOnly ?? appleOnly
        result.drainSeconds = stronger.drainSeconds ?? drainSeconds
        result.readers = stronger.readers ?? readers
        result.quarantineBytesPerDay = stronger.quarantineBytesPerDay ?? quarantineBytesPerDay
        result.publicURL = stronger.publicURL ?? publicURL
        result.silence = stronger.silence ?? silence
        return result
    }

    /// What is wrong with the settings as a whole; nil where nothing is.
    package var contradiction: String? {
        (tlsCertificate == nil) == (tlsKey == nil)
            ? nil : "the certificate and the key for TLS belong together; one of them is missing"
    }
}

// MARK: - The environment

extension ServiceSettings {
    /// A variable of the environment that cannot be used.
    package struct VariableError: Error, Hashable, Sendable, CustomStringConvertible {
        /// Its name.
        package var variable: String
        /// What is wanted.
        package var wanted: String

        /// The name and what is wanted; never the value, which may be a secret in a wrong place.
        package var description: String { "\(variable) cannot be used: wanted is \(wanted)" }
    }

    /// The variables that are read, in the order of the documentation.
    package static let variables = [
        "SUBLEDGER_LISTEN", "SUBLEDGER_TLS_CERTIFICATE", "SUBLEDGER_TLS_KEY",
        "SUBLEDGER_TRUSTED_PROXIES", "SUBLEDGER_APPLE_ONLY", "SUBLEDGER_DRAIN_SECONDS",
        "SUBLEDGER_READERS", "SUBLEDGER_QUARANTINE_BYTES_DAY", "SUBLEDGER_PUBLIC_URL",
    ]

    /// Reads the variables of the environment; an empty one counts as unset.
    ///
    /// - Parameter value: a variable's value.
    /// - Throws: `VariableError` naming the first that cannot be used.
    package init(environment value: (String) -> String?) throws(VariableError) {
        self.init()
        func integer(
            _ name: String,
            _ range: ClosedRange<Int64>
        ) throws(VariableError) -> Int64? {
            guard let text = value(name), !text.isEmpty else { return nil }
            guard let number = Int64(text), range.contains(number) else {
                throw VariableError(
                    variable: name,
                    wanted: "a whole number, \(range.lowerBound) to \(range.upperBound)"
                )
            }
            return number
        }
        func text(_ name: String) -> String? { value(name).flatMap { $0.isEmpty ? nil : $0 } }
        if let given = text("SUBLEDGER_LISTEN") {
            guard let address = ListenAddress(given) else {
                throw VariableError(variable: "SUBLEDGER_LISTEN", wanted: "ADDRESS:PORT")
            }
            listen = address
        }
        tlsCertificate = text("SUBLEDGER_TLS_CERTIFICATE")
        tlsKey = text("SUBLEDGER_TLS_KEY")
        if let given = text("SUBLEDGER_TRUSTED_PROXIES") {
            trustedProxies = try given.split(separator: ",").map { part throws(VariableError) in
                guard let range = AddressRange(part.filter { $0 != " " }) else {
                    throw VariableError(
                        variable: "SUBLEDGER_TRUSTED_PROXIES",
                        wanted: "networks such as 10.0.0.0/8, separated by commas"
                    )
                }
                return range
            }
        }
        if let given = text("SUBLEDGER_APPLE_ONLY") {
            guard given == "true" || given == "false" else {
                throw VariableError(variable: "SUBLEDGER_APPLE_ONLY", wanted: "true or false")
            }
            appleOnly = given == "true"
        }
        drainSeconds = try integer("SUBLEDGER_DRAIN_SECONDS", Self.drainSecondsRange)
        readers = try integer("SUBLEDGER_READERS", Self.readersRange)
        quarantineBytesPerDay = try integer("SUBLEDGER_QUARANTINE_BYTES_DAY", Self.quarantineRange)
        if let given = text("SUBLEDGER_PUBLIC_URL") {
            do throws(HTTPClientError) { publicURL = try HTTPURL(given) } catch {
                throw VariableError(variable: "SUBLEDGER_PUBLIC_URL", wanted: "https://HOST")
            }
        }
    }
}

extension Silence.Limits {
    /// Reads `{"Production": 48, "Sandbox": null}`; what is left out has no limit.
    fileprivate init(_ reader: ConfigurationReader) {
        self.init()
        let remedy = "1 to 8760 hours without a notification before somebody should look"
        productionHours = reader.integer("Production", in: 1...8760, remedy: remedy)
        sandboxHours = reader.integer("Sandbox", in: 1...8760, remedy: remedy)
        reader.refuseUnknownKeys()
    }
}

// MARK: - The configuration file

extension ServiceSettings {
    /// Reads the section `service`; paths are meant from the file's own folder.
    init(_ reader: ConfigurationReader, folder: String) {
        self.init()
        if let text = reader.string("listen") {
            listen = ListenAddress(text)
            if listen == nil {
                reader.report(
                    "listen",
                    "\"\(text)\"; wanted is an IP address and a port such as \"127.0.0.1:8080\" "
                        + "or \"[::]:8080\""
                )
            }
        }
        func path(_ name: String) -> String? {
            reader.string(name).map { $0.hasPrefix("/") ? $0 : folder + $0 }
        }
        tlsCertificate = path("tls_certificate")
        tlsKey = path("tls_key")
        if let contradiction { reader.report("tls_key", contradiction) }
        if reader.has("trusted_proxies") {
            var ranges: [AddressRange] = []
            for (index, text) in reader.strings("trusted_proxies").enumerated() {
                if let range = AddressRange(text) {
                    ranges.append(range)
                } else {
                    reader.report(
                        "trusted_proxies[\(index)]",
                        "\"\(text)\"; wanted is a network such as \"10.0.0.0/8\""
                    )
                }
            }
            trustedProxies = ranges
        } else {
            _ = reader.strings("trusted_proxies")
        }
        appleOnly = reader.bool("apple_only")
        drainSeconds = reader.integer(
            "drain_seconds",
            in: Self.drainSecondsRange,
            remedy: "0 to 600 seconds for requests under way after SIGTERM"
        )
        readers = reader.integer(
            "readers",
            in: Self.readersRange,
            remedy: "1 to 64 questions are answered at once"
        )
        quarantineBytesPerDay = reader.integer(
            "quarantine_bytes_per_day",
            in: Self.quarantineRange,
            remedy: "how many bytes of unusable documents are kept in a day"
        )
        if let text = reader.string("public_url") {
            do throws(HTTPClientError) { publicURL = try HTTPURL(text) } catch {
                reader.report("public_url", error.message)
            }
        }
        if let section = reader.object("silence_hours") { silence = Silence.Limits(section) }
        reader.refuseUnknownKeys()
    }
}
