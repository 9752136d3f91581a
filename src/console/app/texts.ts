// Every text of the page, in one place, so that it can be translated. Keys say where a text stands.

/** The language of the texts, for numbers and times. */
export const LANGUAGE = 'en';

const number = new Intl.NumberFormat(LANGUAGE);

/** A number with its noun: `1 token`, `12 tokens`. */
function counted(count: number, noun: string): string {
  return `${number.format(count)} ${noun}${count === 1 ? '' : 's'}`;
}

export const TEXTS = {
  shell: {
    skip: 'Skip to content',
    sections: 'Sections',
    tokens: 'Tokens',
    review: 'Review',
    signOut: 'Sign out',
    signedInAs: (name: string) => `Signed in as ${name}`,
    loading: 'Loading…',
  },
  signIn: {
    title: 'Sign in',
    intro:
      'Use the name and the password of your account. This page forgets them when you close it.',
    username: 'User name',
    password: 'Password',
    submit: 'Sign in',
    submitting: 'Signing in…',
    refused: 'The user name or the password is wrong.',
    missingUsername: 'Enter your user name.',
    missingPassword: 'Enter your password.',
    hostRefused:
      'You are not signed in. Sign in to the application that this page belongs to, then try again.',
  },
  renew: {
    title: 'Sign in again',
    intro:
      'Your sign-in is no longer accepted. Sign in again to go on; nothing you entered is lost.',
    hostIntro:
      'Your session has ended. Sign in again in another tab, then go on here; nothing you entered is lost.',
    goOn: 'Go on',
    leave: 'Sign out',
    otherUser: 'This is another account. Sign out to change accounts.',
    stillRefused: 'You are still signed out.',
  },
  errors: {
    unreachable: 'The service does not answer. Check your connection, then try again.',
    retry: 'Try again',
    wait: (seconds: number) => `Try again in ${counted(seconds, 'second')}.`,
    signedOut: 'You are signed out.',
  },
  actions: {
    cancel: 'Cancel',
    save: 'Save',
    saving: 'Saving…',
    close: 'Close',
    copy: 'Copy',
    copied: 'Copied',
    copyFailed: 'Your browser did not allow copying. Select the text and copy it.',
    back: 'All tokens',
  },
  states: {
    active: 'Active',
    suspended: 'Suspended',
    expired: 'Expired',
    revoked: 'Revoked',
  },
  rights: {
    endpoints: (count: number) => counted(count, 'endpoint'),
    ofHost: (endpoints: string, host: string) => `${endpoints} of ${host}`,
    ofHosts: (endpoints: string, hosts: number) => `${endpoints} of ${counted(hosts, 'host')}`,
    readOnly: 'read-only',
    everyMethod: 'every method',
    together: (parts: readonly string[]) => parts.join(', '),
  },
  list: {
    title: 'Tokens',
    new: 'New token',
    search: 'Search by name',
    state: 'State',
    allStates: 'All states',
    sort: 'Sort by',
    sorts: { created: 'Newest', expires: 'Expires first', used: 'Last used', name: 'Name' },
    name: 'Name',
    rights: 'May do',
    created: 'Created',
    expires: 'Expires',
    lastUsed: 'Last used',
    unnamed: 'Unnamed token',
    neverUsed: 'Never used',
    notRecorded: 'Not recorded',
    emptyTitle: 'No tokens yet',
    empty:
      'A token lets a program call the API for you. It may do only what you choose, until a date that you choose.',
    noMatchTitle: 'No token matches',
    noMatch: 'Change the search or the state to see more.',
    clearFilters: 'Show all tokens',
    more: 'Load more',
    loadingMore: 'Loading more…',
    shown: (count: number) => `${counted(count, 'token')} shown`,
    shownWithMore: (count: number) => `The first ${counted(count, 'token')} shown; there are more`,
    pending: 'New value waits for its first use',
  },
  newToken: { title: 'New token' },
  token: { title: 'Token' },
  review: { title: 'Review' },
} as const;
