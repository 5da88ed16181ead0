// The order of the test files. Those that take longest come first, so that no worker is left with one of them at the end.
// Jest knows how long files took only where it has run them before, which a fresh clone has not.
const { default: Sequencer } = require('@jest/test-sequencer');

const LONG = [
  'drivers/runtime_limits',
  'databases/replica',
  'databases_guide',
  'drivers/postgresql_crash',
  'databases/killed',
  'start',
  'drivers/runtime',
  'demo',
  'cli',
  'bad_days/killed',
  'cluster',
  'databases/restore',
  'databases/life',
  'auto_deploy',
  'drivers/postgresql',
  'console',
  'conformance/volume',
  'conformance/endpoint',
  'deploy/serving',
  'drivers/postgresql_replica',
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
  'drivers/postgresql_recovery',
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
