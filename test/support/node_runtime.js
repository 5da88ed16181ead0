// How a test file is loaded: by Node itself, and what it needs once for each worker. The module system of jest would read and
// run every package and every source anew for every file, behind a proxy of the globals: half of the time of a run.
const { createRequire } = require('node:module');
const { default: Runtime } = require('jest-runtime');
const { sourceMaps } = require('./typescript');

const GLOBALS = ['afterAll', 'afterEach', 'beforeAll', 'beforeEach', 'describe', 'expect', 'it', 'test'];
/** What `expect.any(String)` and its like compare with: the framework lives in a context with globals of its own. */
const COMPARED = { Array, BigInt, Boolean, Date, Error, Function, Map, Number, Object, Promise, RegExp, Set, String, Symbol };
const ENVIRONMENT = { ...process.env };

module.exports = class NodeRuntime extends Runtime {
  constructor(config, environment, ...rest) {
    Object.assign(environment.global, COMPARED);
    super(config, environment, ...rest);
  }

  /** The framework itself stays where jest keeps it. */
  requireModule(from, moduleName, options, isActual) {
    if (options?.isInternalModule) return super.requireModule(from, moduleName, options, isActual);
    restoreEnvironment();
    for (const name of GLOBALS) globalThis[name] = this._environment.global[name];
    globalThis.jest = this.jestGlobals.jestObjectFor(from);
    return createRequire(from)(moduleName ?? from);
  }

  teardown() {
    this.restoreAllMocks();
    super.teardown();
  }

  getSourceMaps() {
    return sourceMaps;
  }
};

function restoreEnvironment() {
  for (const name of Object.keys(process.env)) if (!(name in ENVIRONMENT)) delete process.env[name];
  Object.assign(process.env, ENVIRONMENT);
}
