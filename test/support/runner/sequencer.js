// The order of the test files. Those that take longest come first, so that no worker is left with one of them at the
// end. Jest knows how long files took only where it has run them before, which a fresh clone has not.
const { readFileSync } = require('node:fs');
const { default: Sequencer } = require('@jest/test-sequencer');

/** By the seconds that they took on two cores with four workers, from 400 down to 20. */
const LONG = [
  'starters/starters',
  'engines/databases/conformance_mariadb',
  'engines/registries/release_images',
  'engines/databases/conformance_postgresql',
  'engines/databases/conformance_redis',
  'engines/registries/release_images_killed',
  'runs/schedule_killed',
  'engines/observers/observer_storm',
  'runs/release_killed',
  'engines/deployments/source_upload_killed',
  'applications/chosen_port',
  'engines/deployments/tenant_networks',
  'engines/dns/dns_bad_days',
  'dashboard/every_page',
  'runs/run_killed',
  'engines/tools/openapi_checkers',
  'engines/databases/databases_guide',
  'engines/databases/databases_killed',
  'engines/databases/databases_replica',
  'engines/deployments/runtime_limits',
  'engines/tools/new',
  'engines/databases/databases_life',
  'engines/deployments/control_plane_killed',
  'engines/databases/postgresql_driver',
  'engines/databases/postgresql_crash',
  'engines/registries/registry_steps_killed',
  'engines/object_storage/object_storage_steps_killed',
  'engines/deployments/replacement_killed',
  'engines/deployments/volume_conformance',
  'engines/databases/endpoint_conformance',
  'engines/databases/databases_restore',
  'engines/tools/generated_driver',
  'engines/databases/databases_endpoint',
  'faces/console',
  'server/demo',
  'server/start',
  'deployments/serving',
  'operator/cli',
  'deployments/deploying',
  'contract/extremes',
  'deployments/auto_deploy_watch',
  'bad_days/build',
  'server/embedded',
  'server/cluster',
  'deployments/kinds',
  'server/outage',
  'server/start_refused',
  'drivers/toolchain/toolchain',
  'server/hostile',
  'deployments/cancel',
  'databases/postgresql',
  'drivers/runtime/hostile',
  'drivers/runtime/runtime',
  'jobs/kill',
  'bad_days/app',
];

/** Spread among the others: several clusters at once are slow, and the programs are built beside the first files. */
const ON_CLUSTER = /\/test\/kubernetes\//;
const LONG_ON_CLUSTER = ['moving', 'projects', 'runs', 'volumes', 'workload_conformance', 'client'];

module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const sorted = byRank(
      super.sort(tests).filter(({ path }) => !ON_CLUSTER.test(path)),
      LONG,
    );
    const onCluster = byRank(
      tests.filter(({ path }) => ON_CLUSTER.test(path)),
      LONG_ON_CLUSTER.map((name) => `kubernetes/${name}`),
    );
    // None among the first quarter, nor among the last fifth, which fill the end.
    const first = sorted.length / 4;
    const step = (sorted.length * 0.55) / (onCluster.length || 1);
    onCluster.forEach((test, i) => sorted.splice(Math.floor(first + i * step) + i, 0, test));
    return sorted;
  }
};

/** Those that are named, in their order, then other heavy ones. */
function byRank(tests, names) {
  const rankOf = ({ path }) => {
    const rank = names.findIndex((name) => path.endsWith(`/test/${name}.test.ts`));
    return rank < 0 ? names.length + Number(!isHeavy(path)) : rank;
  };
  return tests
    .map((test) => [rankOf(test), test])
    .sort(([a], [b]) => a - b)
    .map(([, test]) => test);
}

const isHeavy = (path) => readFileSync(path, 'utf8').startsWith('/** @tier heavy ');
