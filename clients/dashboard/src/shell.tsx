// The frame around all pages: where to go, who is signed in, light or dark.
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { useAction } from './api/use_query';
import { openKeys } from './keyboard';
import { InstallationFoot } from './parts/installation_foot';
import { leaveBy } from './parts/unsaved';
import { signOut, viewer } from './session';
import { setTheme, theme } from './theme';

export function Shell({ children }: { children: ComponentChildren }) {
  const person = viewer.value;
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="/">
          <span class="mark" aria-hidden="true" />
          Platform
        </a>
        {person && (
          <nav aria-label="Main">
            <a href="/search" class="search-link">
              <span>Search</span> <kbd aria-hidden="true">/</kbd>
            </a>
            <PersonMenu name={person.user.name} email={person.user.email} />
          </nav>
        )}
      </header>
      {children}
      <InstallationFoot />
    </>
  );
}

function PersonMenu({ name, email }: { name: string; email: string }) {
  const menu = useRef<HTMLDetailsElement>(null);
  const leaving = useAction(signOut);
  const close = (): void => menu.current?.removeAttribute('open');
  return (
    <details class="menu" ref={menu} onBlur={(event) => closeOutside(event, close)}>
      <summary aria-label={`Account of ${email}`}>
        <span class="initial" aria-hidden="true">
          {name.charAt(0).toUpperCase()}
        </span>
      </summary>
      <div class="menu-list">
        <p>
          <strong>{name}</strong>
          <br />
          <small>{email}</small>
        </p>
        <a href="/settings" onClick={close}>
          Account and security
        </a>
        {viewer.value?.is_operator && (
          <a href="/installation" onClick={close}>
            Installation
          </a>
        )}
        <a href="/resources" onClick={close}>
          Catalogs and access
        </a>
        <a href="/v2/docs">API reference</a>
        <button type="button" class="plain" onClick={() => (close(), openKeys())}>
          Keyboard <kbd>?</kbd>
        </button>
        <button type="button" class="plain" onClick={() => setTheme(theme.value === 'dark' ? 'light' : 'dark')}>
          {theme.value === 'dark' ? 'Light colours' : 'Dark colours'}
        </button>
        <button type="button" class="plain" onClick={() => leaveBy(() => void leaving.run())}>
          Sign out
        </button>
        {leaving.error && <p role="alert">{leaving.error.message}</p>}
      </div>
    </details>
  );
}

function closeOutside(event: FocusEvent, close: () => void): void {
  const [menu, next] = [event.currentTarget as Element, event.relatedTarget as Element | null];
  if (next && !menu.contains(next)) close();
}
