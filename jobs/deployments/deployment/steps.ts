// The way of a deployment, from the source to the version in service. Each step is a file of its name beside this one.
import { hasBuild } from '../../../drivers/builder';
import type { WorkflowStep } from '../../workflow';
import { activateRelease } from './activate';
import { ensureTools, runBuild } from './build';
import { runReleaseCommand } from './command';
import { copyPromoted } from './copy';
import { fetchSource } from './fetch';
import { takeBuiltImage } from './image';
import { startInstances } from './instances';
import { planBuild } from './plan';
import { publishRelease, wantsImage } from './publish';
import { pullSource } from './pull';
import { makeRelease } from './release';
import type { DeploymentRow } from './row';

/** Of a registry that is unreachable: about one minute. */
const ATTEMPTS_MAX = 8;

export interface DeploymentStep extends WorkflowStep<DeploymentRow> {
  /** The status in which it happens. A rollback, a promotion and an image as the source begin with `deploying`. */
  readonly status: 'building' | 'deploying';
  /** It uses the files that steps before it have left on the machine. */
  readonly needsFiles?: true;
}

const isBuilt = (row: DeploymentRow): boolean => row.status !== 'building';

export const steps: readonly DeploymentStep[] = [
  {
    // The files of a commit, a preset or an upload become the files of the deployment.
    name: 'fetch',
    task: 'fetch the source',
    status: 'building',
    isDone: (row) => isBuilt(row) || row.observed?.fetched === true,
    run: fetchSource,
  },
  {
    // Its language and framework are found out, and so how to build it and what it runs.
    name: 'plan',
    task: 'find out how to build the source',
    status: 'building',
    needsFiles: true,
    attemptsMax: ATTEMPTS_MAX,
    isDone: (row) => isBuilt(row) || row.plan !== null,
    run: planBuild,
  },
  {
    // The tools of the plan, such as Node.js in the version of the source, are on this host.
    name: 'equip',
    task: 'install the tools of the build',
    status: 'building',
    needsFiles: true,
    attemptsMax: ATTEMPTS_MAX,
    isDone: (row) => isBuilt(row) || row.observed?.equipped === true,
    run: ensureTools,
  },
  {
    // The commands of the plan run in a sandbox.
    name: 'build',
    task: 'build the source',
    status: 'building',
    needsFiles: true,
    ownTimeLimit: true,
    isDone: (row) => isBuilt(row) || row.observed?.built === true || (row.plan !== null && !hasBuild(row.plan)),
    run: runBuild,
  },
  {
    // The image that a Dockerfile has built takes the place of the source.
    name: 'image',
    task: 'take the image of the build',
    status: 'building',
    needsFiles: true,
    isDone: (row) => isBuilt(row) || row.plan?.kind !== 'dockerfile' || row.plan.image !== undefined,
    run: takeBuiltImage,
  },
  {
    // What another application runs: nothing is built.
    name: 'copy',
    task: 'copy the files of the promoted deployment',
    status: 'deploying',
    attemptsMax: ATTEMPTS_MAX,
    isDone: (row) => !row.promoted_from || row.plan !== null,
    run: copyPromoted,
  },
  {
    // An image as the source: nothing was built.
    name: 'pull',
    task: 'pull the image',
    status: 'deploying',
    attemptsMax: ATTEMPTS_MAX,
    isDone: (row) => row.source.type !== 'image' || row.plan !== null,
    run: pullSource,
  },
  {
    // The files, with the settings and variables of this moment.
    name: 'release',
    task: 'make the release',
    status: 'deploying',
    needsFiles: true,
    isDone: (row) => row.release_id !== null,
    run: makeRelease,
  },
  {
    // The release as an image in the registry of the platform, where other machines find it.
    name: 'publish',
    task: 'publish the release as an image',
    status: 'deploying',
    needsFiles: true,
    attemptsMax: ATTEMPTS_MAX,
    isDone: (row, ctx) => row.observed?.released === true || !wantsImage(row, ctx),
    run: publishRelease,
  },
  {
    // The release command runs once, before anything else of the version.
    name: 'command',
    task: 'run the release command',
    status: 'deploying',
    ownTimeLimit: true,
    isDone: (row) => row.observed?.released === true,
    run: runReleaseCommand,
  },
  {
    // Instances of the release start beside those in service. They may end at any time, so they are asked each time.
    name: 'instances',
    task: 'start the new version',
    status: 'deploying',
    isDone: (row) => row.status === 'active',
    run: startInstances,
  },
  {
    // From now on, requests go to the new version.
    name: 'activate',
    task: 'put the new version into service',
    status: 'deploying',
    ownTimeLimit: true,
    isDone: (row) => row.status === 'active',
    run: activateRelease,
  },
];
