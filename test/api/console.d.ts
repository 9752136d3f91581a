// What tokenwright/console declares, as published. Written by: npm run api

export type ConsoleTexts = Translation<typeof ENGLISH_TEXTS>;

export declare const ENGLISH_TEXTS: {
  shell: {
    title: string;
    needsScript: string;
    skip: string;
    sections: string;
    tokens: string;
    review: string;
    signOut: string;
    signedInAs: Phrase<"name">;
    loading: string;
  };
  signIn: {
    title: string;
    intro: string;
    introKept: string;
    username: string;
    password: string;
    submit: string;
    submitting: string;
    refused: string;
    noCookie: string;
    missingUsername: string;
    missingPassword: string;
    hostRefused: string;
  };
  renew: {
    title: string;
    intro: string;
    hostIntro: string;
    goOn: string;
    leave: string;
    otherUser: string;
    stillRefused: string;
  };
  errors: {
    unreachable: string;
    retry: string;
    wait: Plural<"count">;
    signedOut: string;
    codes: {
      invalid_json: Phrase<"message">;
      invalid_request: Phrase<"message">;
      scopes_required: Phrase<"message">;
      invalid_scope: Phrase<"message">;
      scope_unmatched: Phrase<"message">;
      too_many_scopes: Phrase<"message">;
      quota_exceeded: Phrase<"message">;
      invalid_ttl: Phrase<"message">;
      invalid_expire: Phrase<"message">;
      invalid_limits: Phrase<"message">;
      invalid_options: Phrase<"message">;
      not_found: Phrase<"message">;
      usage_not_recorded: Phrase<"message">;
      unauthenticated: Phrase<"message">;
      invalid_token: Phrase<"message">;
      insufficient_scope: Phrase<"message">;
      address_denied: Phrase<"message">;
      cross_site: Phrase<"message">;
      token_expired: Phrase<"message">;
      method_not_allowed: Phrase<"message">;
      version_conflict: Phrase<"message">;
      request_decided: Phrase<"message">;
      unauthorized_client: Phrase<"message">;
      payload_too_large: Phrase<"message">;
      uri_too_long: Phrase<"message">;
      unsupported_media_type: Phrase<"message">;
      rate_limited: Phrase<"message">;
      limit_exceeded: Phrase<"message">;
      internal: Phrase<"message">;
      id_taken: Phrase<"message">;
      code_taken: Phrase<"message">;
      catalog_empty: Phrase<"message">;
      store_unavailable: Phrase<"message">;
      store_corrupt: Phrase<"message">;
      overloaded: Phrase<"message">;
      durability_unconfirmed: Phrase<"message">;
      revocation_unconfirmed: Phrase<"message">;
      not_a_string: Phrase<"message">;
      empty: Phrase<"message">;
      too_long: Phrase<"message">;
      non_ascii: Phrase<"message">;
      illegal_character: Phrase<"message">;
      missing_method: Phrase<"message">;
      wildcard_position: Phrase<"message">;
      method_invalid: Phrase<"message">;
      scheme_present: Phrase<"message">;
      missing_domain: Phrase<"message">;
      domain_userinfo: Phrase<"message">;
      domain_ip: Phrase<"message">;
      domain_port: Phrase<"message">;
      domain_invalid: Phrase<"message">;
      missing_path: Phrase<"message">;
      query_or_fragment: Phrase<"message">;
      percent_encoding: Phrase<"message">;
      path_template: Phrase<"message">;
      path_empty_segment: Phrase<"message">;
      path_dot_segment: Phrase<"message">;
      route_parameter: Phrase<"message">;
      scope_invalid: Phrase<"message">;
      catalog_not_concrete: Phrase<"message">;
    };
  };
  actions: {
    cancel: string;
    save: string;
    saving: string;
    close: string;
    copy: string;
    copied: string;
    copyFailed: string;
    back: string;
  };
  states: {
    active: string;
    suspended: string;
    expired: string;
    revoked: string;
    ancestor_ended: string;
  };
  rights: {
    endpoints: Plural<"count">;
    ofHost: Phrase<"endpoints" | "host">;
    ofHosts: Plural<"count" | "endpoints">;
    readOnly: string;
    levels: {
      read: string;
      write: string;
    };
    permission: Phrase<"name" | "level">;
    permissions: Plural<"count" | "level">;
    single: Plural<"count">;
    wildcards: Plural<"count">;
    none: string;
    everyMethod: string;
    uses: Plural<"count">;
    caption: Phrase<"host">;
    endpoint: string;
    path: string;
    method: string;
    derivedUses: Plural<"count">;
    usesColumn: string;
    never: string;
    below: string;
  };
  list: {
    title: string;
    new: string;
    search: string;
    searchedValue: string;
    state: string;
    liveStates: string;
    allStates: string;
    sort: string;
    sorts: {
      created: string;
      expire: string;
      lastUsed: string;
      name: string;
    };
    sortRefused: Phrase<"message">;
    filters: string;
    activeFilters: Plural<"count">;
    scope: string;
    scopeExample: string;
    host: string;
    anyHost: string;
    unused: string;
    name: string;
    rights: string;
    created: string;
    by: string;
    createdBy: string;
    createdByHint: string;
    expires: string;
    expired: string;
    lastUsed: string;
    unnamed: string;
    neverUsed: string;
    notRecorded: string;
    export: string;
    exporting: Plural<"count">;
    exported: Plural<"count">;
    emptyTitle: string;
    empty: string;
    noLiveTitle: string;
    noLive: {
      expired: Phrase<"name">;
      revoked: Phrase<"name">;
      ancestor_ended: Phrase<"name">;
    };
    showAll: string;
    noMatchTitle: string;
    noMatch: Plural<"count">;
    filter: Phrase<"label" | "value">;
    removeFilter: Phrase<"filter">;
    clearFilters: string;
    more: string;
    loadingMore: string;
    shown: Plural<"count">;
    shownWithMore: Plural<"count">;
  };
  newToken: {
    presets: string;
    presetNames: {
      'Read only': string;
    };
    title: string;
    name: string;
    nameHint: string;
    expiry: string;
    expiries: {
      '7d': string;
      '30d': string;
      '90d': string;
      '365d': string;
      default: string;
      date: string;
      kept: string;
    };
    until: Phrase<"date">;
    date: string;
    dateHint: string;
    missingDate: string;
    scopes: string;
    missingScopes: string;
    limits: string;
    limitsHint: string;
    addresses: string;
    addressesHint: string;
    uses: string;
    rate: string;
    rateUses: string;
    rateSeconds: string;
    windows: {
      '1': string;
      '60': string;
      '3600': string;
      '86400': string;
    };
    sameCall: string;
    json: string;
    curl: string;
    copyJson: string;
    copyCurl: string;
    submit: string;
    submitting: string;
  };
  value: {
    issued: string;
    rotated: string;
    once: string;
    again: string;
    pending: string;
    value: string;
    copyValue: string;
    firstCall: string;
    firstCallHint: string;
    fillIn: string;
    copyCall: string;
    name: string;
    rights: string;
    expires: string;
    done: string;
    notCopied: string;
    leaveTitle: string;
    leave: string;
    stay: string;
  };
  derive: {
    title: string;
    intro: Phrase<"name" | "date">;
    back: string;
    below: Phrase<"name">;
    none: string;
  };
  picker: {
    search: string;
    searchHint: string;
    wordsHint: string;
    view: string;
    views: {
      permissions: string;
      endpoints: string;
    };
    permissions: string;
    levels: {
      none: string;
      read: string;
      write: string;
      custom: string;
    };
    deprecated: string;
    permissionCount: Plural<"count">;
    onlyThis: string;
    onlyThisHint: string;
    found: Plural<"count">;
    foundSome: Plural<"count" | "shown">;
    foundNone: string;
    tickFound: Plural<"count">;
    untickFound: Plural<"count">;
    tree: string;
    everything: string;
    below: Phrase<"path">;
    open: Phrase<"path">;
    thisPath: string;
    root: string;
    readOnly: string;
    readOnlyOf: Phrase<"path">;
    count: Plural<"count">;
    countOf: Plural<"count" | "all">;
    any: string;
    nameOf: Phrase<"path">;
    nameProblems: {
      unspellable: string;
      endpoint: string;
    };
    badName: Phrase<"path">;
    badPath: string;
    includedBy: Phrase<"scope">;
    more: Plural<"count">;
    others: string;
    othersHint: string;
    remove: string;
    removeScope: Phrase<"scope">;
    add: string;
    addLabel: string;
    addHint: string;
    addSubmit: string;
    unknown: string;
    instead: string;
    typed: string;
    preview: string;
    nothing: string;
    granted: Phrase<"endpoints" | "where">;
    hosts: Plural<"count">;
    onlyReading: Plural<"count">;
    allWriting: Plural<"count">;
    writing: Plural<"count">;
    requested: Plural<"count">;
    exactly: Plural<"count">;
    snapshot: string;
  };
  token: {
    title: string;
    facts: string;
    name: string;
    state: string;
    value: string;
    valuePending: string;
    valueSettled: string;
    created: string;
    expires: string;
    createdBy: string;
    purpose: string;
    actor: string;
    actorToken: string;
    parent: string;
    elevates: string;
    endsWithChange: string;
    ended: string;
    details: string;
    id: string;
    copyId: string;
    copyMasked: string;
    version: string;
    metadata: string;
    limits: string;
    onlyFrom: Phrase<"addresses">;
    mostUses: Plural<"count">;
    mostRate: Phrase<"uses" | "seconds">;
    seconds: Plural<"count">;
    rights: string;
    narrow: string;
    edit: string;
    suspend: string;
    resume: string;
    rotate: string;
    revoke: string;
    show: string;
    hide: string;
    suspended: string;
    resumed: string;
    pending: string;
    drop: string;
    dropped: string;
    children: string;
    moreChildren: Plural<"count">;
  };
  edit: {
    title: string;
    changes: string;
    noLimit: string;
    done: string;
  };
  difference: {
    added: Plural<"count">;
    removed: Plural<"count">;
    kept: Phrase<"summary">;
  };
  narrow: {
    title: string;
    since: Phrase<"date">;
    none: Plural<"count">;
    early: Phrase<"since" | "begin">;
    unusedSoFar: Plural<"count">;
    allUsedSoFar: string;
    noneUsedSoFar: string;
    unknownSoFar: string;
    anyway: Plural<"count">;
    allUnused: string;
    confirm: Plural<"count">;
    done: Plural<"count">;
    removeTitle: string;
    orphaned: string;
    allOrphaned: string;
  };
  rotate: {
    title: string;
    intro: string;
    when: string;
    whens: {
      'first-use': string;
      grace: string;
      now: string;
    };
    grace: string;
    graces: {
      '3600': string;
      '86400': string;
      '604800': string;
    };
    endDerived: string;
    confirm: string;
    busy: string;
  };
  revoke: {
    title: string;
    warning: string;
    descendants: Plural<"count">;
    descendantsAtLeast: Plural<"count">;
    confirm: string;
    busy: string;
    done: Phrase<"name">;
  };
  bulk: {
    select: Phrase<"name">;
    selectAll: string;
    selectMatching: string;
    reading: Plural<"count">;
    descendants: string;
    selected: Plural<"count">;
    revoke: string;
    title: Plural<"count">;
    warning: string;
    andMore: Plural<"count">;
    progress: Plural<"count" | "done">;
    failed: Plural<"count">;
    confirm: Plural<"count">;
    stop: string;
    revoked: Plural<"count" | "done">;
    left: Plural<"count">;
    goOn: Plural<"count">;
    done: Plural<"count">;
  };
  conflict: {
    title: string;
    intro: string;
    mine: string;
    goOn: string;
    revoked: string;
    revokedIntro: string;
  };
  explain: {
    title: string;
    method: string;
    address: string;
    placeholder: string;
    ask: string;
    wrongAddress: string;
    yes: string;
    no: string;
    grantedBy: string;
    nearest: {
      method: string;
      domain: string;
      path: string;
    };
    smallest: string;
    add: string;
    suggestions: string;
    reasons: {
      insufficient_scope: string;
      expired: string;
      suspended: string;
      revoked: string;
      ancestor_revoked: string;
      ancestor_expired: string;
      ancestor_changed: string;
      ancestor_suspended: string;
      ancestor_insufficient: string;
    };
    otherReason: Phrase<"reason">;
    ambiguous: Phrase<"reason">;
    limits: Phrase<"limits">;
    ancestorLimits: string;
  };
  approve: {
    title: string;
    intro: string;
    code: string;
    codeHint: string;
    wrongCode: string;
    unknownCode: string;
    submit: string;
    submitting: string;
    asks: string;
    asksMore: string;
    warning: string;
    about: string;
    client: string;
    clientHint: string;
    purpose: string;
    address: string;
    unknownAddress: string;
    asked: string;
    until: string;
    first: string;
    firstHint: string;
    rights: string;
    rightsHint: string;
    beyond: string;
    beyondCount: Plural<"count" | "all">;
    nothingBeyond: string;
    noRights: string;
    nothing: string;
    missing: string;
    lifetime: string;
    lifetimeHint: string;
    approve: string;
    approving: string;
    deny: string;
    denying: string;
    another: string;
    approvedTitle: string;
    approved: string;
    approvedMore: string;
    approvedRights: string;
    deniedTitle: string;
    denied: string;
    decidedTitle: string;
    decided: {
      approved: string;
      redeemed: string;
      denied: string;
    };
    goneTitle: string;
    gone: string;
  };
  review: {
    title: string;
    intro: string;
    emptyTitle: string;
    empty: string;
    count: Plural<"count">;
    reading: Plural<"count">;
    actionOn: Phrase<"name" | "action">;
    actions: {
      revoke: string;
      narrow: string;
      scopes: string;
      extend: string;
      rotate: string;
      remove: string;
      resume: string;
    };
    codes: {
      unused: string;
      never_used: string;
      broad: string;
      excess: string;
      expiring: string;
      stale_secret: string;
      orphaned_scope: string;
      suspended: string;
    };
    messages: {
      unused: Phrase<"time">;
      never_used: Phrase<"date">;
      broad: Phrase<"reasons">;
      excess: Plural<"count" | "all">;
      expiring: Phrase<"date">;
      stale_secret: Phrase<"date">;
      orphaned_scope: Plural<"count" | "all">;
      suspended: Phrase<"date">;
    };
    reasons: {
      every_method: string;
      whole_host: string;
      most_of_catalog: Phrase<"covered" | "entries">;
    };
  };
};

export interface PluralText {
  readonly zero?: string;
  readonly one?: string;
  readonly two?: string;
  readonly few?: string;
  readonly many?: string;
  readonly other: string;
}

export interface TokenConsole {
  (request: Request): Response;
  readonly basePath: string;
}

export interface TokenConsoleOptions {
  readonly basePath: string;
  readonly api: string;
  readonly title?: string | undefined;
  readonly brand?: string | undefined;
  readonly texts?: ConsoleTexts | undefined;
  readonly language?: string | undefined;
  readonly direction?: 'ltr' | 'rtl' | undefined;
}

export declare function tokenConsole(options: TokenConsoleOptions): TokenConsole;

// Not exported, but part of the above:

declare const NAMES: unique symbol;

type Phrase<Name extends string> = string & {
  readonly [NAMES]?: Name;
};

type Plural<Name extends string> = PluralText & {
  readonly [NAMES]?: Name;
};

type Translation<Texts> = {
  readonly [Key in keyof Texts]?: Texts[Key] extends string ? string : Texts[Key] extends PluralText ? string | PluralText : Translation<Texts[Key]>;
};
