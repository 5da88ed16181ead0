// How a test file is loaded: by Node itself, and what it needs once for each worker. The module system of jest would
// read and run every package and every source anew for every file, behind a proxy of the globals: half of the time of a
// run.
const asyncHooks = require('node:async_hooks');
const { createRequire } = require('node:module');
const { default: Runtime } = require('jest-runtime');
const { sourceMaps } = require('./typescript');

const GLOBALS = ['afterAll', 'afterEach', 'beforeAll', 'beforeEach', 'describe', 'expect', 'it', 'test'];
/** What `expect.any(String)` and its like compare with: the framework lives in a context with globals of its own. */
const COMPARED = {
  Array,
  BigInt,
  Boolean,
  Date,
  Error,
  Function,
  Map,
  Number,
  Object,
  Promise,
  RegExp,
  Set,
  String,
  Symbol,
};
const ENVIRONMENT = { ...process.env };
// Processes that the program forks read the sources as this one does.
if (!process.execArgv.includes('--require')) process.execArgv.push('--require', require.resolve('./typescript'));

/** Where jest notes which test runs. Those of a file run one after another, so it needs not follow their promises. */
class RunningTest {
  run(store, work) {
    const before = this.store;
    this.store = store;
    const restore = () => void (this.store = before);
    const done = work();
    if (done instanceof Promise) done.then(restore, restore);
    else restore();
    return done;
  }

  getStore() {
    return this.store;
  }
}

// Before Node 24 one AsyncLocalStorage makes every promise of the process dearer: a tenth of a run. Nothing else here
// uses one.
if (Number(process.versions.node.split('.')[0]) < 24) asyncHooks.AsyncLocalStorage = RunningTest;

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
