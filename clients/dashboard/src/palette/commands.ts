// Everything that the palette finds and does: pages, things, what an application can be told, and the page itself.
import { request } from '../api/client';
import { openKeys } from '../keyboard';
import { leaveBy } from '../parts/unsaved';
import {
  applicationSections,
  canStart,
  canStop,
  DEPLOY,
  deployFilesHref,
  RESTART,
  START,
  stopHref,
} from '../pages/application/frame';
import { databaseSections } from '../pages/database/frame';
import { INSTALLATION_PAGES } from '../pages/installation/places';
import { subject, type Tab } from '../place';
import { projectGroups } from '../project_pages';
import { navigate } from '../router';
import { mayActAs, projectOf, projects, logOut, viewer } from '../session';
import { setTheme, theme } from '../theme';
import type { Named, Names, Part } from './names';
import type { Command } from './rank';
import { reloadPage } from '../api/use_query';

/** @param path of the page that is shown @param projectId of its project */
export function commandsOf(names: Names, path: string, projectId: string): Command[] {
  return [
    ...subjectCommands(path),
    ...projectCommands(projectId),
    ...names.named.map(openThing),
    ...names.parts.map(partCommand),
    ...projects.value.map(projectCommand),
    ...personCommands(),
  ];
}

/** Projects, and applications of the one that is shown. */
export function switchesOf(names: Names, projectId: string): Command[] {
  const applications = names.named.filter(({ kind }) => kind.word === 'application');
  const own = applications.filter(({ project }) => project.id === projectId);
  const others = applications.filter(({ project }) => project.id !== projectId);
  return [
    ...own.map((named) => ({ ...openThing(named), isSuggested: true })),
    ...projects.value.map((project) => ({ ...projectCommand(project), isSuggested: true })),
    ...others.map(openThing),
    { id: 'projects', label: 'All projects', hint: 'page', icon: 'project', href: '/', isSuggested: true },
  ];
}

/** Sections of what the page shows. */
function subjectCommands(path: string): Command[] {
  const shown = subject.value;
  if (!/^\/(applications|databases)\//.test(path) || !shown) return [];
  return shown.sections.map((section) => ({ ...sectionCommand(section, shown.name), isSuggested: true }));
}

const sectionCommand = ({ href, label }: Tab, name: string): Command => ({
  id: `section ${href}`,
  ...{ label, hint: `page of ${name}`, icon: label === 'Logs' ? 'logs' : 'open', href },
});

function projectCommands(id: string): Command[] {
  const project = projectOf(id);
  if (!project) return [];
  const pages = projectGroups(id).flatMap(({ pages: found }) => found);
  const made = ['Database', 'Bucket', 'DNS zone', 'Email domain', 'Observer'].map((thing): Command => ({
    id: `new ${thing}`,
    ...{ label: `New ${thing.replace(/^[A-Z](?=[a-z])/, (first) => first.toLowerCase())}`, words: 'create add' },
    ...{ hint: `action in ${project.name}`, icon: 'add', href: `/projects/${id}/${PAGES_OF_NEW[thing]}` },
  }));
  return [
    ...(mayActAs('developer', id)
      ? [
          {
            ...{ id: 'new application', label: 'New application', hint: `action in ${project.name}`, icon: 'add' },
            ...{ href: `/projects/${id}/new`, words: 'create add deploy', isSuggested: true },
          } satisfies Command,
          ...made,
        ]
      : []),
    ...pages.map(({ href, label, icon }): Command => ({
      ...{ id: `page ${href}`, label, hint: `page of ${project.name}`, icon, href, isSuggested: true },
    })),
  ];
}

const PAGES_OF_NEW: Record<string, string> = {
  Database: 'databases',
  Bucket: 'buckets',
  'DNS zone': 'dns',
  'Email domain': 'email_domains',
  Observer: 'observers',
};

function openThing({ kind, id, name, project }: Named): Command {
  return {
    ...{ id: `${kind.word} ${id}`, label: name, hint: `${kind.word} in ${project.name}`, icon: kind.icon },
    href: kind.href(id, project.id),
  };
}

/** Things whose pages and orders are offered at once. */
const MEANT_MAX = 20;

/**
 * Pages of applications and databases, and what they can be told: of the one that is shown, and of those that some
 * words of the text name. Thousands of applications have ten times as many.
 */
export function commandsOfThings({ named }: Names, path: string, text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const isShown = ({ kind, id }: Named): boolean => path.startsWith(`/${kind.word}s/${id}`);
  const isMeant = (one: Named): boolean =>
    isShown(one) || (words.length > 1 && words.some((word) => one.name.toLowerCase().includes(word)));
  return named
    .filter((one) => (one.kind.word === 'application' || one.kind.word === 'database') && isMeant(one))
    .slice(0, MEANT_MAX)
    .flatMap((one) => thingCommands(one, isShown(one)));
}

function thingCommands(named: Named, isShown: boolean): Command[] {
  const { kind, id, name, project } = named;
  const isApplication = kind.word === 'application';
  const actions = isApplication && mayActAs('developer', project.id) ? orders(named, isShown) : [];
  if (isShown) return actions;
  const sections = isApplication ? applicationSections(id) : databaseSections(id);
  return [
    ...actions,
    ...sections.slice(1).map((section): Command => ({
      ...sectionCommand(section, name),
      label: `${name}: ${section.label.toLowerCase()}`,
    })),
  ];
}

/** The page that is on the screen already does not know what has changed. */
async function show(to: string): Promise<void> {
  navigate(to);
  await reloadPage();
}

/** What applies to an application as it is. */
function orders({ id, name, status = '', source }: Named, isShown: boolean): Command[] {
  const to = `/applications/${id}`;
  const order = (label: string, icon: Command['icon'], run: () => Promise<void>): Command => ({
    ...{ id: `${label} ${id}`, label: `${label} ${name}`, hint: 'action', icon, run, isSuggested: isShown },
  });
  return [
    order('Deploy', 'deploy', async () => {
      // What was sent by hand has to be chosen.
      if (!source || source.type === 'upload') return navigate(deployFilesHref(id));
      const { createDeployment } = await request(DEPLOY, { id, input: {} });
      navigate(`${to}/deployments/${createDeployment.id}`);
    }),
    ...(canStop(status)
      ? [
          order('Restart', 'restart', async () => {
            await request(RESTART, { id });
            await show(to);
          }),
          order('Stop', 'stop', async () => navigate(stopHref(id))),
        ]
      : []),
    ...(canStart(status)
      ? [
          order('Start', 'start', async () => {
            await request(START, { id });
            await show(to);
          }),
        ]
      : []),
  ];
}

const partCommand = ({ icon, word, name, application, href }: Part): Command => ({
  id: `${word} ${application.id} ${name}`,
  ...{ label: name, hint: `${word} of ${application.name}`, icon, href },
});

const projectCommand = ({ id, name }: { id: string; name: string }): Command => ({
  id: `project ${id}`,
  ...{ label: name, hint: 'project', icon: 'project', href: `/projects/${id}` },
});

/** When the palette is closed, which gives the focus back to where it was. */
const afterwards = (run: () => void) => (): void => void setTimeout(run);

const installationPages = INSTALLATION_PAGES.map((place) => ({
  ...place,
  label: place.href === '/installation' ? 'Installation' : `Installation: ${place.label.toLowerCase()}`,
}));

function personCommands(): Command[] {
  const next = theme.value === 'dark' ? 'light' : 'dark';
  const page = (label: string, href: string, icon: Command['icon'], words = ''): Command => ({
    ...{ id: `page ${href}`, label, hint: 'page', icon, href, words, isSuggested: true },
  });
  return [
    page('Projects', '/', 'project', 'home deleted bin restore'),
    page('Account and security', '/settings', 'person', 'password two-factor keys sessions'),
    page('Catalogs and access', '/resources', 'resources', 'regions sizes prices'),
    ...(viewer.value?.is_operator
      ? installationPages.map(({ label, href, icon }) => page(label, href, icon, 'upgrade domain'))
      : []),
    { ...page('API reference', '/v2/docs', 'docs', 'REST documentation help'), hint: 'documentation' },
    { ...page('GraphiQL', '/graphql', 'docs', 'GraphQL documentation help'), hint: 'documentation' },
    {
      id: 'keyboard',
      label: 'Keyboard',
      hint: 'documentation',
      icon: 'keyboard',
      words: 'shortcuts',
      run: afterwards(openKeys),
    },
    {
      ...{ id: 'theme', label: `Use ${next} colours`, hint: 'action', icon: 'theme', words: 'theme mode' },
      run: () => setTheme(next),
    },
    {
      ...{ id: 'log out', label: 'Log out', hint: 'action', icon: 'logOut', words: 'leave' },
      run: afterwards(() => leaveBy(() => void logOut())),
    },
  ];
}
