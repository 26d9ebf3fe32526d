import Synchronization
import Testing

@testable import LedgerService

@Suite struct DeliveryWatchTests {
    /// A watch whose clock the test sets, and what it said.
    private final class Scene: Sendable {
        let seconds = Atomic<Int>(0)
        let alerts = Mutex<[DeliveryWatch.Standing]>([])

        func watch() -> DeliveryWatch {
            DeliveryWatch(
                elapsed: { [self] in .seconds(seconds.load(ordering: .relaxed)) },
                alert: { [self] standing in alerts.withLock { $0.append(standing) } }
            )
        }

        func moveOn(_ count: Int) { seconds.add(count, ordering: .relaxed) }

        var origins: [DeliveryWatch.Origin] { alerts.withLock { $0.map(\.origin) } }
    }

    @Test func moreRefusalsThanAcceptancesAreTold() {
        let scene = Scene()
        let watch = scene.watch()
        for _ in 0..<6 { watch.note(.production, isAccepted: true) }
        for _ in 0..<6 { watch.note(.production, isAccepted: false) }
        #expect(scene.origins == [], "as many is not more")
        watch.note(.production, isAccepted: false)
        #expect(scene.origins == [.production])
        let standing = scene.alerts.withLock { $0[0] }
        #expect(standing.count.refused == 7)
        #expect(standing.count.accepted == 6)
    }

    @Test func aBusyProductionDoesNotHideASandboxOfWhichAllIsRefused() {
        let scene = Scene()
        let watch = scene.watch()
        for _ in 0..<1000 { watch.note(.production, isAccepted: true) }
        for _ in 0..<DeliveryWatch.refusalsMin { watch.note(.sandbox, isAccepted: false) }
        #expect(scene.origins == [.sandbox])
        #expect(watch.standings.filter(\.isOutnumbered).map(\.origin) == [.sandbox])
    }

    @Test func aFewRefusalsMeanNothing() {
        let scene = Scene()
        let watch = scene.watch()
        for _ in 1..<DeliveryWatch.refusalsMin { watch.note(.unknown, isAccepted: false) }
        #expect(scene.origins == [])
    }

    @Test func itIsToldAgainOnlyAfterAWholeWindow() {
        let scene = Scene()
        let watch = scene.watch()
        for _ in 0..<19 {
            for _ in 0..<10 { watch.note(.sandbox, isAccepted: false) }
            scene.moveOn(60)
        }
        #expect(scene.origins.count == 2, "at once, and after ten minutes")
    }

    @Test func whatIsLongAgoCountsNoMore() {
        let scene = Scene()
        let watch = scene.watch()
        for _ in 0..<4 { watch.note(.sandbox, isAccepted: false) }
        scene.moveOn(660)
        for _ in 0..<4 { watch.note(.sandbox, isAccepted: false) }
        #expect(scene.origins == [])
        watch.note(.sandbox, isAccepted: false)
        #expect(scene.origins == [.sandbox])
        scene.moveOn(660)
        #expect(watch.standings.allSatisfy { !$0.isOutnumbered })
        // Neither do acceptances of the hour before.
        for _ in 0..<100 { watch.note(.production, isAccepted: true) }
        scene.moveOn(660)
        for _ in 0..<5 { watch.note(.production, isAccepted: false) }
        #expect(scene.origins == [.sandbox, .production])
    }
}
