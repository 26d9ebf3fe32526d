// swift-tools-version: 6.3
import PackageDescription

/// Every Swift target is built with the same, strictest settings.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("ImmutableWeakCaptures"),
    .enableUpcomingFeature("InferIsolatedConformances"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("NonisolatedNonsendingByDefault"),
    .strictMemorySafety(),
    .treatAllWarnings(as: .error),
]

/// A test target for one module, beside what every test may use.
func tests(of module: String, dependencies: [Target.Dependency]) -> Target {
    .testTarget(
        name: "\(module)Tests",
        dependencies: dependencies + ["TestSupport"],
        path: "Tests/\(module)Tests",
        swiftSettings: strict
    )
}

let package = Package(
    name: "subledger",
    products: [.executable(name: "subledger", targets: ["subledger"])],
    targets: [
        .systemLibrary(name: "CPostgres", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(
            name: "CMicroHTTPD",
            pkgConfig: "libmicrohttpd",
            providers: [.apt(["libmicrohttpd-dev"])]
        ),
        .systemLibrary(
            name: "CCurl",
            pkgConfig: "libcurl",
            providers: [.apt(["libcurl4-openssl-dev"])]
        ),

        .target(name: "Postgres", dependencies: ["CPostgres"], swiftSettings: strict),
        .target(name: "Crypto", dependencies: ["COpenSSL"], swiftSettings: strict),
        .target(name: "HTTP", dependencies: ["CCurl", "CMicroHTTPD"], swiftSettings: strict),
        .target(name: "Ledger", swiftSettings: strict),
        .target(name: "AppStore", dependencies: ["Crypto", "Ledger"], swiftSettings: strict),
        .target(
            name: "Schema",
            path: "schema",
            exclude: ["README.md"],
            resources: [.embedInCode("migrations"), .embedInCode("statements")],
            swiftSettings: strict
        ),
        .target(
            name: "EventLog",
            dependencies: ["AppStore", "Crypto", "Ledger", "Postgres", "Schema"],
            swiftSettings: strict
        ),
        .target(
            name: "Projections",
            dependencies: ["Ledger", "Postgres"],
            path: "Projections",
            exclude: ["README.md"],
            resources: [
                .embedInCode("Churn/churn_cohorts.sql"),
                .embedInCode("Churn/churn_history_missing.sql"),
                .embedInCode("Churn/churn_losses.sql"),
                .embedInCode("Churn/churn_money_views.sql"),
                .embedInCode("Churn/churn_successions.sql"),
                .embedInCode("Churn/churn_tables.sql"),
                .embedInCode("Churn/churn_views.sql"),
                .embedInCode("Entitlement/entitlement_tables.sql"),
                .embedInCode("Entitlement/entitlement_views.sql"),
                .embedInCode("Entitlement/entitlement_owners.sql"),
                .embedInCode("Entitlement/entitlement_refund_reason.sql"),
                .embedInCode("BillingRecovery/billing_recovery_tables.sql"),
                .embedInCode("BillingRecovery/billing_recovery_views.sql"),
                .embedInCode("ExtensionAudit/extension_comments.sql"),
                .embedInCode("ExtensionAudit/extension_reports.sql"),
                .embedInCode("ExtensionAudit/extension_tables.sql"),
                .embedInCode("ExtensionAudit/extension_views.sql"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "LedgerService",
            dependencies: [
                "AppStore", "Crypto", "EventLog", "HTTP", "Ledger", "Postgres", "Projections",
                "Schema",
            ],
            resources: [.embedInCode("Service/openapi.json")],
            swiftSettings: strict
        ),
        .target(name: "AppStoreSimulator", dependencies: ["Crypto"], swiftSettings: strict),
        .target(
            name: "SimulatorServer",
            dependencies: ["AppStoreSimulator", "Crypto", "HTTP"],
            swiftSettings: strict
        ),
        .target(
            name: "Benchmarks",
            dependencies: [
                "AppStore", "AppStoreSimulator", "Crypto", "EventLog", "HTTP", "Ledger",
                "LedgerService", "Postgres", "Projections",
            ],
            path: "Tests/Benchmarks",
            resources: [
                .embedInCode("made_up_subscriptions.sql"), .embedInCode("window_fold.sql"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "subledger",
            dependencies: [
                "AppStore", "AppStoreSimulator", "Benchmarks", "Crypto", "EventLog", "HTTP",
                "Ledger", "LedgerService", "Postgres", "Projections", "Schema",
                "SimulatorServer",
            ],
            swiftSettings: strict
        ),

        .target(
            name: "TestSupport",
            dependencies: ["Crypto", "HTTP", "Postgres"],
            path: "Tests/TestSupport",
            swiftSettings: strict
        ),
        tests(of: "Postgres", dependencies: ["Postgres"]),
        tests(of: "Crypto", dependencies: ["Crypto"]),
        tests(of: "HTTP", dependencies: ["Crypto", "HTTP"]),
        tests(of: "Ledger", dependencies: ["Ledger"]),
        tests(of: "AppStore", dependencies: ["AppStore", "AppStoreSimulator", "Crypto", "Ledger"]),
        tests(of: "Schema", dependencies: ["EventLog", "Postgres", "Schema"]),
        tests(
            of: "EventLog",
            dependencies: ["AppStore", "Crypto", "EventLog", "Ledger", "Postgres", "Schema"]
        ),
        tests(
            of: "Projections",
            dependencies: [
                "EventLog", "Ledger", "LedgerService", "Postgres", "Projections", "Schema",
            ]
        ),
        tests(
            of: "LedgerService",
            dependencies: [
                "AppStore", "AppStoreSimulator", "Benchmarks", "Crypto", "EventLog", "HTTP",
                "Ledger", "LedgerService", "Postgres", "Projections", "Schema",
                "SimulatorServer",
            ]
        ),
        tests(of: "AppStoreSimulator", dependencies: ["AppStoreSimulator", "Crypto"]),
        tests(
            of: "SimulatorServer",
            dependencies: ["AppStoreSimulator", "Crypto", "HTTP", "SimulatorServer"]
        ),
        tests(
            of: "Subledger",
            dependencies: [
                "AppStore", "AppStoreSimulator", "Crypto", "EventLog", "HTTP", "Ledger",
                "LedgerService", "Postgres", "SimulatorServer", "subledger",
            ]
        ),
    ],
    swiftLanguageModes: [.v6]
)
