// The order of the test files. Those that take longest come first, so that no worker is left with one of them at the
// end. Jest knows how long files took only where it has run them before, which a fresh clone has not.
const { default: Sequencer } = require('@jest/test-sequencer');

const LONG = [
  'engines/runtime_limits',
  'engines/databases_replica',
  'databases_guide',
  'engines/postgresql_crash',
  'engines/databases_killed',
  'start',
  'drivers/runtime',
  'demo',
  'cli',
  'bad_days/killed',
  'cluster',
  'engines/databases_restore',
  'databases/life',
  'auto_deploy',
  'drivers/postgresql',
  'console',
  'conformance/volume',
  'conformance/endpoint',
  'deploy/serving',
  'engines/postgresql_replica',
  'bad_days/build',
  'bad_days/app',
  'embedded',
  'new',
  'deploy/kinds',
  'deploying',
  'outage',
  'openapi',
  'deploy/cancel',
  'databases/endpoint',
  'engines/postgresql_recovery',
];

module.exports = class LongestFirst extends Sequencer {
  sort(tests) {
    const placeOf = ({ path }) => {
      const place = LONG.findIndex((name) => path.endsWith(`/test/${name}.test.ts`));
      return place < 0 ? LONG.length : place;
    };
    return [...super.sort(tests)].sort((a, b) => placeOf(a) - placeOf(b));
  }
};
