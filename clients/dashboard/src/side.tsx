// The side bar: the things of the project by group, and below one of them the pages of what is open. On a narrow screen
// it is a drawer: a modal dialog, which keeps the focus inside and closes with Escape.
import { signal } from '@preact/signals';
import { useEffect, useId, useRef } from 'preact/hooks';
import { openPalette } from './keyboard';
import { Icon, type IconName } from './parts/icon';
import { useModal } from './parts/modal';
import { isOutside, isWithin, shownProject, subject, type Tab } from './place';
import { INSTALLATION_PAGES } from './pages/installation/places';
import { projectGroups, type ProjectPage } from './project_pages';
import { address } from './router';
import { projectOf, viewer } from './session';

/** From here on the side bar stands beside the page. */
const WIDE = matchMedia('(min-width: 62rem)');
export const isWide = signal(WIDE.matches);
const isDrawerOpen = signal(false);
WIDE.addEventListener('change', ({ matches }) => {
  isWide.value = matches;
  isDrawerOpen.value = false;
});

export function SideBar() {
  return isWide.value ? (
    <div class="side">
      <Places />
    </div>
  ) : null;
}

/** The button that opens the drawer, where the screen is narrow. */
export function DrawerButton() {
  if (isWide.value) return null;
  return (
    <button
      type="button"
      class="plain icon-button"
      aria-label="Menu"
      aria-haspopup="dialog"
      onClick={() => void (isDrawerOpen.value = true)}
    >
      <Icon name="menu" />
    </button>
  );
}

export function Drawer() {
  const { path } = address.value;
  useEffect(() => void (isDrawerOpen.value = false), [path]);
  return isDrawerOpen.value ? <OpenDrawer /> : null;
}

function OpenDrawer() {
  const close = (): void => void (isDrawerOpen.value = false);
  const element = useModal(close);
  return (
    <dialog
      ref={element}
      class="drawer"
      aria-label="Menu"
      onClick={({ target }) => (target === element.current || (target as Element).closest('a')) && close()}
    >
      <div class="side">
        <button type="button" class="plain icon-button" aria-label="Close the menu" onClick={close}>
          <Icon name="close" />
        </button>
        <Places />
      </div>
    </dialog>
  );
}

function Places() {
  const id = shownProject();
  if (isOutside()) return <AccountPlaces />;
  // Until a page knows its project, the room of the links is kept.
  return (
    <>
      <Switcher name={projectOf(id)?.name} />
      <nav class={`places ${id ? '' : 'unknown'}`} aria-label="Main">
        {projectGroups(id ?? '').map(({ title, pages }) => (
          <Group key={title} title={title} pages={pages} />
        ))}
      </nav>
    </>
  );
}

function AccountPlaces() {
  const pages: ProjectPage[] = [
    { href: '/', label: 'Projects', icon: 'project' },
    { href: '/settings', label: 'Account and security', icon: 'person' },
    { href: '/resources', label: 'Catalogs and access', icon: 'resources' },
  ];
  return (
    <>
      <Switcher name={undefined} />
      <nav class="places" aria-label="Main">
        <Group title="" pages={pages} />
        {viewer.value?.is_operator && <Group title="Installation" pages={INSTALLATION_PAGES} />}
      </nav>
    </>
  );
}

function Switcher({ name }: { name: string | undefined }) {
  return (
    <button type="button" class="quiet switcher" aria-haspopup="dialog" onClick={() => openPalette('switch')}>
      <span class="clip">{name ?? 'Choose a project'}</span>
      <span class="off-screen">, switch project or application</span>
      <Icon name="switch" />
    </button>
  );
}

function Group({ title, pages }: { title: string; pages: readonly ProjectPage[] }) {
  const id = useId();
  return (
    <>
      {title && (
        <p class="group" id={id}>
          {title}
        </p>
      )}
      <ul aria-labelledby={title ? id : undefined}>
        {pages.map((page) => (
          <Place key={page.href} page={page} />
        ))}
      </ul>
    </>
  );
}

function Place({ page: { href, label, icon, things } }: { page: ProjectPage }) {
  const { path } = address.value;
  const open = subject.value;
  const isAbove = things !== undefined && path.startsWith(things);
  const isHere = /^(\/projects\/\w*)?(\/resources|\/installation)?\/?$/.test(href)
    ? path === href
    : isWithin(path, href);
  return (
    <li>
      <a href={href} aria-current={isHere ? 'page' : undefined} class={isAbove ? 'above' : ''}>
        <Icon name={icon} />
        {label}
      </a>
      {isAbove && open && <Sections icon={path.startsWith('/applications') ? 'application' : icon} {...open} />}
    </li>
  );
}

const SECTION_ICONS: Record<string, IconName> = {
  Deployments: 'deploy',
  Logs: 'logs',
  Metrics: 'metrics',
  Environment: 'variable',
  Processes: 'processes',
  Runs: 'terminal',
  Schedules: 'schedule',
  Domains: 'domain',
  Settings: 'settings',
  Connect: 'open',
  Users: 'members',
  Backups: 'backup',
  Restore: 'restore',
};

/** Pages of what is open, such as an application. */
function Sections({ icon, name, sections }: { icon: IconName; name: string; sections: readonly Tab[] }) {
  const { path } = address.value;
  const nav = useRef<HTMLUListElement>(null);
  useEffect(() => {
    nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' });
  }, [path]);
  if (!sections.length) return null;
  const [first] = sections;
  return (
    <ul class="sections" aria-label={`Sections of ${name}`} ref={nav}>
      {sections.map(({ href, label }) => (
        <li key={href}>
          <a href={href} aria-current={isWithin(path, href, first?.href) ? 'page' : undefined}>
            <Icon name={href === first?.href ? icon : (SECTION_ICONS[label] ?? 'open')} />
            {href === first?.href ? <span class="clip">{name}</span> : label}
          </a>
        </li>
      ))}
    </ul>
  );
}
