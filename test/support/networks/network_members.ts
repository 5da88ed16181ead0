// Units with a network of their own within that of their project: each has every port, also those below 1024.
import { ask, REACH, useNetworkTrial, type NetworkTrial } from './network_trial';
import { until } from '../builds/runtime';

const EXPOSED = 80;
/** Of DATABASE_PORTS in the trial. */
const DATABASE = 30_005;

const SERVE = `
require("net")
  .createServer((socket) => socket.on("error", () => {}).end(process.argv[1] + " " + socket.remoteAddress))
  .listen(Number(process.argv[2]), "0.0.0.0", () => console.log("listens"))`;

/** More than a network may open elsewhere while the unit runs. */
const CONNECT_MANY = `
let begun = 0, answered = 0;
const next = () => {
  if (begun++ >= 9000) return;
  require("net").connect(Number(process.argv[1]), "127.0.0.1")
    .on("data", () => ++answered === 9000 && console.log("9000")).on("error", () => {}).on("close", next);
};
for (let i = 0; i < 50; i++) next();`;

export function networkMemberCases(): void {
  let one: NetworkTrial;
  let service: { port: number };
  useNetworkTrial((...opened) => ([one, service] = opened));

  const serve = async (unitId: string, network: string, reachedAt: number): Promise<void> => {
    const command = `exec node -e '${SERVE}' ${unitId} ${EXPOSED}`;
    const exposed = { port: EXPOSED, reached_at: reachedAt };
    await one.trial.start(one.trial.spec(unitId, command, { network, exposed }));
    await one.trial.printed(unitId, 'listens');
  };

  /** What a command prints in a unit with a network of its own. */
  const shell = async (unitId: string, network: string, command: string): Promise<string[]> => {
    const exposed = { port: EXPOSED, reached_at: 24_004 };
    await one.trial.run(one.trial.spec(unitId, command, { network, exposed }));
    return one.trial.lines(unitId);
  };

  test('two units of a project listen on port 80, and each is reached at a port of its own alone', async () => {
    const { runtime } = one.trial;
    expect(runtime.exposesPorts).toBe(true);
    await serve('ins_web_1', 'prj_web', 24_001);
    await serve('ins_web_2', 'prj_web', 24_002);
    const [first, second] = [runtime.locationOf('ins_web_1'), runtime.locationOf('ins_web_2')];
    expect([await ask(first, 24_001), await ask(second, 24_002)]).toEqual([
      'ins_web_1 127.0.0.1',
      'ins_web_2 127.0.0.1',
    ]);
    expect(await runtime.listening((await runtime.find('ins_web_2'))!)).toEqual([24_002]);

    await one.trial.reopen();
    expect(await ask(one.trial.runtime.locationOf('ins_web_1'), 24_001)).toBe('ins_web_1 127.0.0.1');
    await one.destroy('ins_web_1', 'ins_web_2');
    expect(await one.networks.list()).toEqual([]);
    await until(() => one.leftOvers().length === 0);
  }, 60_000);

  test('it reaches the databases of its project and servers of the platform, and nothing else', async () => {
    const database = await one.serve('db_own', 'prj_own', DATABASE);
    const worker = await one.serve('ins_worker', 'prj_own', 7001);
    await one.serve('db_foreign', 'prj_other', DATABASE + 1);
    await serve('ins_neighbour', 'prj_own', 24_003);
    const addressOf = (location: object): string => ('address' in location ? String(location.address) : '');
    const foreign = addressOf(one.trial.runtime.locationOf('db_foreign'));
    const neighbour = addressOf(one.trial.runtime.locationOf('ins_neighbour'));
    const [own, platform] = [`127.0.0.1:${DATABASE}`, `127.0.0.1:${service.port}`];
    const refused = [
      ...[`127.0.0.1:${DATABASE + 1}`, '127.0.0.1:7001', '127.0.0.1:24003', '127.0.0.1:80'],
      ...[`${foreign}:${DATABASE + 1}`, `${neighbour}:24003`, `${neighbour}:80`, `${addressOf(worker)}:7001`],
    ];
    const reach = `exec node -e '${REACH}' ${[own, platform, ...refused].join(' ')}`;
    const found = JSON.parse((await shell('ins_reach', 'prj_own', reach)).join('\n')) as Record<string, string>;
    expect(found).toEqual({
      [own]: 'db_own 127.0.0.1',
      [platform]: 'the host',
      ...Object.fromEntries(refused.map((target) => [target, 'ECONNREFUSED'])),
    });
    // A program without a pool of connections, as in many languages.
    expect(await shell('ins_busy', 'prj_own', `exec node -e '${CONNECT_MANY}' ${DATABASE}`)).toEqual(['9000']);
    // Nor does its project reach it, but by the ingress.
    const [port, gate] = [`${neighbour}:24003`, `${neighbour}:80`];
    const back = await one.reach('ins_back', 'prj_own', [port, gate, '127.0.0.1:24003']);
    expect(Object.values(back)).toEqual(['ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED']);
    expect(await ask(database, DATABASE)).toBe('db_own 127.0.0.1');

    // The network of the project stays as long as a unit within it.
    await one.destroy('db_own', 'ins_worker', 'db_foreign', 'ins_reach', 'ins_busy', 'ins_back');
    expect((await one.networks.list()).sort()).toEqual(['ins_neighbour', 'prj_own']);
    await one.destroy('ins_neighbour');
    expect(await one.networks.list()).toEqual([]);
  }, 60_000);
}
