/* command_tag.c: statements by the names PostgreSQL has for them, for messages.
 *
 * Most nodes of the tree are named after the command ("CreatePolicyStmt"); the others stand in a
 * table. What alters, renames or drops any kind of object says which kind in a field; that field's
 * OBJECT_… becomes words too. */
#include "sql/sql_int.h"

static const struct {
    const char *node;
    const char *words;
    const char *object; /* field that names the kind of object, which follows the words */
} tags[] = {
    {"AlterDatabaseRefreshCollStmt", "ALTER DATABASE", NULL},
    {"AlterDatabaseSetStmt", "ALTER DATABASE", NULL},
    {"AlterEnumStmt", "ALTER TYPE", NULL},
    {"AlterEventTrigStmt", "ALTER EVENT TRIGGER", NULL},
    {"AlterExtensionContentsStmt", "ALTER EXTENSION", NULL},
    {"AlterFdwStmt", "ALTER FOREIGN DATA WRAPPER", NULL},
    {"AlterForeignServerStmt", "ALTER SERVER", NULL},
    {"AlterFunctionStmt", "ALTER", "objtype"},
    {"AlterObjectDependsStmt", "ALTER", "objectType"},
    {"AlterObjectSchemaStmt", "ALTER", "objectType"},
    {"AlterOpFamilyStmt", "ALTER OPERATOR FAMILY", NULL},
    {"AlterOwnerStmt", "ALTER", "objectType"},
    {"AlterRoleSetStmt", "ALTER ROLE", NULL},
    {"AlterStatsStmt", "ALTER STATISTICS", NULL},
    {"AlterTSConfigurationStmt", "ALTER TEXT SEARCH CONFIGURATION", NULL},
    {"AlterTSDictionaryStmt", "ALTER TEXT SEARCH DICTIONARY", NULL},
    {"AlterTableMoveAllStmt", "ALTER", "objtype"},
    {"AlterTableSpaceOptionsStmt", "ALTER TABLESPACE", NULL},
    {"CheckPointStmt", "CHECKPOINT", NULL},
    {"ClosePortalStmt", "CLOSE CURSOR", NULL},
    {"CompositeTypeStmt", "CREATE TYPE", NULL},
    {"CreateAmStmt", "CREATE ACCESS METHOD", NULL},
    {"CreateEnumStmt", "CREATE TYPE", NULL},
    {"CreateEventTrigStmt", "CREATE EVENT TRIGGER", NULL},
    {"CreateFdwStmt", "CREATE FOREIGN DATA WRAPPER", NULL},
    {"CreateForeignServerStmt", "CREATE SERVER", NULL},
    {"CreateOpClassStmt", "CREATE OPERATOR CLASS", NULL},
    {"CreateOpFamilyStmt", "CREATE OPERATOR FAMILY", NULL},
    {"CreatePLangStmt", "CREATE LANGUAGE", NULL},
    {"CreateRangeStmt", "CREATE TYPE", NULL},
    {"CreateStatsStmt", "CREATE STATISTICS", NULL},
    {"CreateTableSpaceStmt", "CREATE TABLESPACE", NULL},
    {"CreateTrigStmt", "CREATE TRIGGER", NULL},
    {"CreatedbStmt", "CREATE DATABASE", NULL},
    {"DefineStmt", "CREATE", "kind"},
    {"DropStmt", "DROP", "removeType"},
    {"DropTableSpaceStmt", "DROP TABLESPACE", NULL},
    {"DropdbStmt", "DROP DATABASE", NULL},
    {"LockStmt", "LOCK TABLE", NULL},
    {"RefreshMatViewStmt", "REFRESH MATERIALIZED VIEW", NULL},
    {"RenameStmt", "ALTER", "renameType"},
    {"RuleStmt", "CREATE RULE", NULL},
    {"SecLabelStmt", "SECURITY LABEL", NULL},
};

/* Kinds of objects whose constant is not their name with lines for blanks. */
static const struct {
    const char *type;
    const char *words;
} objects[] = {
    {"OBJECT_ATTRIBUTE", "TYPE"},
    {"OBJECT_DOMCONSTRAINT", "DOMAIN"},
    {"OBJECT_FDW", "FOREIGN DATA WRAPPER"},
    {"OBJECT_FOREIGN_SERVER", "SERVER"},
    {"OBJECT_LARGEOBJECT", "LARGE OBJECT"},
    {"OBJECT_MATVIEW", "MATERIALIZED VIEW"},
    {"OBJECT_OPCLASS", "OPERATOR CLASS"},
    {"OBJECT_OPFAMILY", "OPERATOR FAMILY"},
    {"OBJECT_STATISTIC_EXT", "STATISTICS"},
    {"OBJECT_TABCONSTRAINT", "TABLE"},
    {"OBJECT_TSCONFIGURATION", "TEXT SEARCH CONFIGURATION"},
    {"OBJECT_TSDICTIONARY", "TEXT SEARCH DICTIONARY"},
    {"OBJECT_TSPARSER", "TEXT SEARCH PARSER"},
    {"OBJECT_TSTEMPLATE", "TEXT SEARCH TEMPLATE"},
};

/* Nodes that stand for two commands, told apart by a field. */
static const char *by_field(const char *node, const struct json *body) {
    if (strcmp(node, "GrantStmt") == 0) {
        return json_flag(body, "is_grant") ? "GRANT" : "REVOKE";
    }
    if (strcmp(node, "GrantRoleStmt") == 0) {
        return json_flag(body, "is_grant") ? "GRANT ROLE" : "REVOKE ROLE";
    }
    if (strcmp(node, "CreateFunctionStmt") == 0) {
        return json_flag(body, "is_procedure") ? "CREATE PROCEDURE" : "CREATE FUNCTION";
    }
    if (strcmp(node, "FetchStmt") == 0) {
        return json_flag(body, "ismove") ? "MOVE" : "FETCH";
    }
    if (strcmp(node, "TransactionStmt") == 0) {
        return json_is(body, "kind", "TRANS_STMT_PREPARE")           ? "PREPARE TRANSACTION"
               : json_is(body, "kind", "TRANS_STMT_COMMIT_PREPARED") ? "COMMIT PREPARED"
                                                                     : "ROLLBACK PREPARED";
    }
    return NULL;
}

static const char *kind_words(struct arena *arena, const char *type) {
    if (!type || strncmp(type, "OBJECT_", 7) != 0) {
        return "this object";
    }
    for (i64 i = 0; i < COUNT_OF(objects); i++) {
        if (strcmp(objects[i].type, type) == 0) {
            return objects[i].words;
        }
    }
    char *out = arena_printf(arena, "%s", type + 7);
    for (char *at = out; *at; at++) {
        *at = *at == '_' ? ' ' : *at;
    }
    return out;
}

/* "CreatePolicyStmt" as "CREATE POLICY". */
static const char *split_words(struct arena *arena, const char *node) {
    char *out = arena_alloc(arena, 2 * (i64)strlen(node) + 1);
    i64 len = 0;
    for (const char *at = node; *at && strcmp(at, "Stmt") != 0; at++) {
        bool lower = *at >= 'a' && *at <= 'z';
        if (!lower && len > 0) {
            out[len++] = ' ';
        }
        out[len++] = lower ? (char)(*at - 32) : *at;
    }
    return out;
}

const char *command_tag(struct arena *arena, const char *node, const struct json *body) {
    const char *words = by_field(node, body);
    for (i64 i = 0; i < COUNT_OF(tags) && !words; i++) {
        if (strcmp(tags[i].node, node) == 0) {
            words = tags[i].object
                        ? arena_printf(arena, "%s %s", tags[i].words,
                                       kind_words(arena, json_text(body, tags[i].object)))
                        : tags[i].words;
        }
    }
    return words ? words : split_words(arena, node);
}
