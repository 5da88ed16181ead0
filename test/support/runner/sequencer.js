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
  'engines/deployments/deployment_steps',
  'engines/deployments/tenant_networks',
  'dashboard/every_page',
  'engines/tools/openapi_checkers',
  'engines/databases/databases_guide',
  'engines/databases/databases_killed',
  'engines/databases/databases_replica',
  'engines/deployments/runtime_limits',
  'engines/tools/new',
  'engines/databases/databases_life',
  'engines/deployments/control_plane_killed',
  'engines/databases/postgresql/driver',
  'engines/databases/postgresql/crash',
  'engines/registries/registry_steps_killed',
  'engines/object_storage/object_storage_steps_killed',
  'engines/databases/replacement_steps',
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

/** Of at least a minute in which they hardly compute: several at once would leave a processor idle. */
const WAITING = [
  'runs/schedule_killed',
  'engines/observers/observer_storm',
  'runs/release_killed',
  'engines/dns/dns_bad_days',
  'applications/chosen_port',
  'engines/email/mail_killed',
  'engines/deployments/source_upload_killed',
  'runs/attach_between',
  'runs/run_killed',
  'faces/stream_end',
  'faces/stream_access',
];

/** Several clusters at once are slow, and the programs are built beside the first files. */
const ON_CLUSTER = /\/test\/kubernetes\//;
const LONG_ON_CLUSTER = ['moving', 'projects', 'runs', 'volumes', 'workload_conformance', 'client'].map(
  (name) => `kubernetes/${name}`,
);

module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const waiting = tests.filter((test) => rankIn(WAITING, test) >= 0);
    const onCluster = tests.filter(({ path }) => ON_CLUSTER.test(path));
    const others = super.sort(tests).filter((test) => !waiting.includes(test) && !onCluster.includes(test));
    const order = byRank(others, LONG);
    spread(order, byRank(waiting, WAITING), { from: 0, to: 0.5 });
    // Nor among the last ones, which fill the end.
    spread(order, byRank(onCluster, LONG_ON_CLUSTER), { from: 0.25, to: 0.8 });
    return order;
  }
};

/** Puts them among the others, at equal distances. @param range parts of the order, from 0 to 1 */
function spread(order, tests, { from, to }) {
  const step = (order.length * (to - from)) / (tests.length || 1);
  const first = order.length * from;
  tests.forEach((test, i) => order.splice(Math.floor(first + i * step) + i, 0, test));
}

/** Those that are named, in their order, then the others that take more in their quarter. */
function byRank(tests, names) {
  const rankOf = (test) => {
    const rank = rankIn(names, test);
    return rank < 0 ? names.length + Number(!isHeavy(test.path)) : rank;
  };
  return tests
    .map((test) => [rankOf(test), test])
    .sort(([a], [b]) => a - b)
    .map(([, test]) => test);
}

const rankIn = (names, { path }) => names.findIndex((name) => path.endsWith(`/test/${name}.test.ts`));

const isHeavy = (path) => readFileSync(path, 'utf8').startsWith('/** @tier ');
