PRAGMA foreign_keys = ON;

CREATE TABLE author (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE CHECK (length(name) > 0)
);

CREATE TABLE book (
    id INTEGER PRIMARY KEY,
    author INTEGER NOT NULL REFERENCES author,
    title TEXT NOT NULL,
    year INTEGER NOT NULL CHECK (year BETWEEN 1450 AND 2026),
    UNIQUE (author, title)
);

CREATE TABLE loan (
    id INTEGER PRIMARY KEY,
    book INTEGER NOT NULL REFERENCES book,
    lent TEXT NOT NULL,
    due TEXT NOT NULL,
    CHECK (due > lent)
);
