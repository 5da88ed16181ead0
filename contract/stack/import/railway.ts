// railway.json and railway.toml: one application.
import {
  addApplication,
  addSchedule,
  processFieldsOf,
  relativePath,
  setDockerfile,
  setInstances,
  setBuildCommand,
  setReleaseCommand,
  setRepository,
  setSetting,
  takeCommand,
} from './application';
import { setHealthNumbers, setHealthPath } from './health';
import { nodeEntries, numberOf, take, nodeText, type Node } from './node';
import { note, openFile, report, type Application, type ImportRun } from './run';
import type { Reasons } from './sweep';

export function importRailway(run: ImportRun, path: string): void {
  const root = openFile(run, path);
  if (!root) return;
  run.roots.push(root);
  const application = addApplication(run, 'app', root);
  note(run, root, 'The file names no application. It is called app.', 'Another name in platform.yaml.');
  setRepository(run, application, undefined, undefined);
  take(root, '$schema');
  readBuild(run, application, take(root, 'build'));
  readDeploy(run, application, take(root, 'deploy'));
  for (const [, one] of nodeEntries(take(root, 'environments')))
    report(run, one, 'A project here is one environment.', 'environments of platform.yaml');
}

function readBuild(run: ImportRun, application: Application, build: Node | undefined): void {
  const builder = take(build, 'builder');
  const name = (nodeText(builder) ?? '').toUpperCase();
  const dockerfile = relativePath(run, take(build, 'dockerfilePath'));
  if (name === 'DOCKERFILE' || (dockerfile && !name)) setDockerfile(run, application, { path: dockerfile });
  const command = take(build, 'buildCommand');
  if (name !== 'DOCKERFILE') setBuildCommand(run, application, command);
  const [plan] = [take(build, 'nixpacksPlan')];
  if (plan) report(run, plan, 'The language is recognised in the source.', 'build.build_command');
}

function readDeploy(run: ImportRun, application: Application, deploy: Node | undefined): void {
  const start = take(deploy, 'startCommand');
  const cron = take(deploy, 'cronSchedule');
  if (cron) {
    processFieldsOf(application, 'web').set('instances', 0);
    addSchedule(run, application, { name: 'cron', cron, command: nodeText(start) });
  } else takeCommand(run, processFieldsOf(application, 'web'), start);
  setReleaseCommand(run, application, take(deploy, 'preDeployCommand') ?? take(deploy, 'releaseCommand'));
  setHealthPath(run, application, take(deploy, 'healthcheckPath'));
  const timeout = take(deploy, 'healthcheckTimeout');
  // The time until a new deployment answers.
  if (timeout) setHealthNumbers(run, application, { grace: timeout });
  if (!cron) setInstances(run, processFieldsOf(application, 'web'), take(deploy, 'numReplicas'));
  const restart = take(deploy, 'restartPolicyType');
  const never = nodeText(restart)?.toUpperCase() === 'NEVER';
  if (restart && never) note(run, restart, 'Instances are always restarted.', 'svc run, or a schedule');
  const drain = numberOf(take(deploy, 'drainingSeconds'));
  if (drain !== null) setSetting(application, 'run', 'shutdown_grace_seconds', Math.min(300, Math.max(0, drain)));
}

const REGION = ['Resources are in the region of the project.', 'region'] as const;

export const RAILWAY_REASONS: Reasons = {
  ...{ region: REGION, multiRegionConfig: REGION },
  watchPatterns: ['Each push is deployed.', 'build.root_directory'],
  ...{ nixpacksConfigPath: ['The language is recognised in the source.', 'build.build_command'] },
  ...{
    nixpacksVersion: ['The language is recognised in the source.'],
    railpackVersion: ['The language is recognised in the source.'],
  },
  restartPolicyMaxRetries: ['Instances are always restarted, with pauses.'],
  sleepApplication: ['Instances run until they are scaled.', 'svc scale web=0'],
  overlapSeconds: ['The previous version serves until the new one is healthy.'],
  requiredMountPath: ['Volumes are said in platform.yaml.', 'volumes: { …: { application, mount_path } }'],
  limitOverride: ['The size of the application limits this.', 'application_type'],
  runtime: ['This is of Railway alone.'],
  useLegacyStacker: ['This is of Railway alone.'],
  numReplicas: ['A schedule has no instances.'],
};
