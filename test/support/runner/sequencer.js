// The order of the test files. Those that take longest come first, so that no worker is left with one of them at the
// end. Jest knows how long files took only where it has run them before, which a fresh clone has not.
const { default: Sequencer } = require('@jest/test-sequencer');

/** By the seconds that they took on two cores with four workers, from 300 down to 20. */
const LONG = [
  'starters/starters',
  'engines/conformance_redis',
  'engines/observer_storm',
  'engines/conformance_mariadb',
  'engines/databases_guide',
  'engines/databases_killed',
  'engines/conformance_postgresql',
  'engines/databases_replica',
  'engines/runtime_limits',
  'engines/new',
  'engines/databases_life',
  'engines/control_plane_killed',
  'engines/postgresql_driver',
  'engines/postgresql_crash',
  'engines/registry_steps_killed',
  'engines/object_storage_steps_killed',
  'engines/replacement_killed',
  'engines/volume_conformance',
  'engines/endpoint_conformance',
  'engines/databases_restore',
  'engines/openapi_checkers',
  'engines/generated_driver',
  'engines/databases_endpoint',
  'console',
  'demo',
  'start',
  'deploy/serving',
  'cli',
  'deploying',
  'contract/extremes',
  'auto_deploy_watch',
  'bad_days/build',
  'embedded',
  'cluster',
  'deploy/kinds',
  'outage',
  'start_refused',
  'drivers/toolchain',
  'hostile',
  'deploy/cancel',
  'databases/postgresql',
  'drivers/hostile',
  'drivers/runtime',
  'jobs/kill',
  'bad_days/app',
];

module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const rankOf = ({ path }) => {
      const rank = LONG.findIndex((name) => path.endsWith(`/test/${name}.test.ts`));
      return rank < 0 ? LONG.length : rank;
    };
    return [...super.sort(tests)].sort((a, b) => rankOf(a) - rankOf(b));
  }
};
