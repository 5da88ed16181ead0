// The frame of each page: where one is, its title and actions, its tabs, and "as API call".
import { createContext, type ComponentChildren } from 'preact';
import { useContext, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ApiError } from '../api/client';
import { address } from '../router';
import { projectOf } from '../session';
import { ApiCalls } from './api_calls';
import { RoleNote } from './role_note';

export { Table } from './table';

export interface Tab {
  href: string;
  label: string;
}

interface PageProps {
  title: string;
  /** Stands behind the title, such as a status. */
  beside?: ComponentChildren;
  trail?: readonly Tab[];
  tabs?: readonly Tab[];
  actions?: ComponentChildren;
  projectId?: string | undefined;
  /** Command of `svc` that shows the same. */
  command?: string;
  children: ComponentChildren;
}

const NOT_FOUND = new ApiError('not_found', 404, 'The project does not exist.');

/** Tells the page that what it shows does not exist. */
const Missing = createContext<(isMissing: boolean) => void>(() => {});

export function Page({ title, beside, trail = [], tabs = [], actions, projectId, command, children }: PageProps) {
  const isProjectMissing = projectId !== undefined && !projectOf(projectId);
  const [isMissing, setMissing] = useState(isProjectMissing);
  const shown = isMissing ? 'Not found' : title;
  useEffect(() => {
    document.title = `${shown} · Dashboard`;
  }, [shown]);
  return (
    <main id="main" tabIndex={-1}>
      <Trail trail={trail} projectId={projectId} />
      <header class="page-head">
        <div class="title">
          <h1>{shown}</h1>
          {!isMissing && beside}
        </div>
        <div class="actions">
          <RoleNote projectId={projectId} />
          {!isMissing && actions}
        </div>
      </header>
      {tabs.length > 0 && !isMissing && <Tabs tabs={tabs} />}
      <Missing.Provider value={setMissing}>
        {isProjectMissing ? <Waiting error={NOT_FOUND} /> : children}
      </Missing.Provider>
      <ApiCalls projectId={projectId} command={command} />
    </main>
  );
}

function Trail({ trail, projectId }: { trail: readonly Tab[]; projectId: string | undefined }) {
  const project = projectOf(projectId);
  const steps = [
    { href: '/', label: 'Projects' },
    ...(project ? [{ href: `/projects/${project.id}`, label: project.name }] : []),
    ...trail,
  ];
  return (
    <nav class="trail" aria-label="Breadcrumb">
      <ol>
        {steps.map(({ href, label }) => (
          <li key={href}>
            <a href={href}>{label}</a>
          </li>
        ))}
      </ol>
    </nav>
  );
}

function Tabs({ tabs }: { tabs: readonly Tab[] }) {
  const { path } = address.value;
  const nav = useRef<HTMLElement>(null);
  useEffect(() => {
    // Where the screen is narrow, the tab of the page is not among the first.
    const current = nav.current?.querySelector<HTMLElement>('[aria-current]');
    if (nav.current && current)
      nav.current.scrollLeft = current.offsetLeft - (nav.current.clientWidth - current.offsetWidth) / 2;
  }, [path]);
  return (
    <nav class="tabs" aria-label="Sections" ref={nav}>
      <ul>
        {tabs.map(({ href, label }) => (
          <li key={href}>
            <a href={href} aria-current={isWithin(path, href, tabs) ? 'page' : undefined}>
              {label}
            </a>
          </li>
        ))}
      </ul>
    </nav>
  );
}

/** A tab is that of the pages below it, but the first one, which all others are below. */
function isWithin(path: string, href: string, tabs: readonly Tab[]): boolean {
  return path === href || (href !== tabs[0]?.href && path.startsWith(`${href}/`));
}

/** In place of what is not there: an error, or room for what comes. */
export function Waiting({ error, rows = 4 }: { error?: ApiError | null | undefined; rows?: number }) {
  const setMissing = useContext(Missing);
  const isMissing = error?.status === 404;
  useLayoutEffect(() => {
    if (!isMissing) return undefined;
    setMissing(true);
    return () => setMissing(false);
  }, [isMissing]);
  if (error) {
    return (
      <div class="notice bad" role="alert">
        {isMissing ? 'This does not exist, or you have no access to it.' : error.message}
      </div>
    );
  }
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}

interface EmptyProps {
  title: string;
  children: ComponentChildren;
  /** Command that does the next step. */
  command?: string;
  action?: ComponentChildren;
}

/** Says the next step where a list has nothing. */
export function Empty({ title, children, command, action }: EmptyProps) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      <p>{children}</p>
      {action && <p>{action}</p>}
      {command && (
        <p class="command">
          On the command line: <code>{command}</code>
        </p>
      )}
    </div>
  );
}

export function Section({
  title,
  actions,
  children,
}: {
  title: string;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section>
      <header class="section-head">
        <h2>{title}</h2>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </section>
  );
}

export function Facts({ facts }: { facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? '–'}</dd>
        </div>
      ))}
    </dl>
  );
}
