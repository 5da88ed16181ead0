// `describe` for tests on a Kubernetes cluster: that of KUBECONFIG where it is set, else one of this machine.
import { existsSync } from 'node:fs';
import path from 'node:path';
import { hasProgram } from '../support/runner/has_program';
import { named, needs } from '../support/runner/programs';
import { builtPrograms } from './build';
import { startCluster, type ClusterOfMachine, type TestCluster } from './cluster';

/** What a cluster of this machine consists of, beside what is built (core/catalog/optional_programs.json). */
const PROGRAMS = ['containerd', 'runc', 'etcd', 'iptables', 'ip', 'unshare', 'setpriv', 'flock', 'kubectl', 'busybox'];
/** Runs that may take the quarter of an hour of a first build. */
const BUILDING_TIERS = ['kubernetes', 'heavy', 'turn', 'ci', 'all'];
const START_MS = 180_000;
const BUILD_MS = 45 * 60_000;

const given = process.env.KUBECONFIG;

/** For what any cluster can do. Skipped by name where there is none. */
export function describeOnCluster(name: string, run: (kubeconfig: () => string) => void): void {
  if (given) describe(name, () => run(() => given));
  else describeOnTestCluster(name, (cluster) => run(() => cluster().kubeconfig));
}

/**
 * For services that give images to its nodes: a cluster of this machine, also one that runs already, where `KUBECONFIG`
 * is in its directory.
 */
export function describeOnClusterOfMachine(name: string, run: (cluster: () => ClusterOfMachine) => void): void {
  const directory = given && path.dirname(given);
  if (given && directory && existsSync(path.join(directory, 'images.tar')))
    describe(name, () => run(() => ({ kubeconfig: given, directory })));
  else describeOnTestCluster(name, run);
}

/** For what kills nodes, or takes the API server away: never a cluster of somebody. */
export function describeOnTestCluster(name: string, run: (cluster: () => TestCluster) => void, nodes?: number): void {
  const reason = given ? 'needs: a cluster of its own, without KUBECONFIG' : missing();
  if (reason) return (named(describe.skip, ` (${reason})`) as jest.Describe)(name, () => run(noCluster));
  needs(...PROGRAMS).describe(name, () => {
    let cluster: TestCluster | null = null;
    beforeAll(
      async () => {
        cluster = await startCluster(nodes);
      },
      builtPrograms() ? START_MS : BUILD_MS,
    );
    run(() => cluster ?? noCluster());
    // Behind those of the tests, whose services need it until their end.
    afterAll(() => cluster?.stop(), START_MS);
  });
}

function missing(): string | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'needs: root, on Linux';
  if (builtPrograms()) return null;
  if (!BUILDING_TIERS.includes(process.env.TEST_TIER ?? '')) return 'needs: one run of npm run test:kubernetes';
  return hasProgram('go') || process.env.CI ? null : 'needs: go';
}

function noCluster(): never {
  throw new Error('The cluster is not running.');
}
