//! The columns of the system tables, in MySQL's order; a number's name ends with `#`.

pub(super) const DATABASES: [&str; 2] = [INFORMATION, PERFORMANCE];
pub(super) const INFORMATION: &str = "information_schema";
pub(super) const PERFORMANCE: &str = "performance_schema";

/// A system table.
#[derive(Debug)]
pub(super) struct SystemTable {
    pub(super) database: &'static str,
    pub(super) name: &'static str,
    columns: &'static str,
}

/// A column of a system table.
#[derive(Debug)]
pub(super) struct SystemColumn {
    pub(super) name: &'static str,
    pub(super) is_number: bool,
}

impl SystemTable {
    pub(super) fn columns(&self) -> impl Iterator<Item = SystemColumn> {
        self.columns.split_whitespace().map(|name| {
            let number = name.strip_suffix('#');
            SystemColumn { name: number.unwrap_or(name), is_number: number.is_some() }
        })
    }
}

/// The system table of a database and name, in lower case.
pub(super) fn find(database: &str, name: &str) -> Option<&'static SystemTable> {
    TABLES.iter().find(|table| table.database == database && table.name == name)
}

const fn of(name: &'static str, columns: &'static str) -> SystemTable {
    SystemTable { database: INFORMATION, name, columns }
}

const fn variables(name: &'static str) -> SystemTable {
    SystemTable { database: PERFORMANCE, name, columns: "variable_name variable_value" }
}

pub(super) const TABLES: &[SystemTable] = &[
    of(
        "schemata",
        "catalog_name schema_name default_character_set_name default_collation_name sql_path default_encryption",
    ),
    of(
        "tables",
        "table_catalog table_schema table_name table_type engine version# row_format table_rows# avg_row_length# data_length# \
         max_data_length# index_length# data_free# auto_increment# create_time update_time check_time table_collation checksum# \
         create_options table_comment",
    ),
    of(
        "columns",
        "table_catalog table_schema table_name column_name ordinal_position# column_default is_nullable data_type \
         character_maximum_length# character_octet_length# numeric_precision# numeric_scale# datetime_precision# \
         character_set_name collation_name column_type column_key extra privileges column_comment generation_expression srs_id#",
    ),
    of("binlogz_create_table", "table_schema table_name create_table"),
    of(
        "statistics",
        "table_catalog table_schema table_name non_unique# index_schema index_name seq_in_index# column_name collation \
         cardinality# sub_part# packed nullable index_type comment index_comment is_visible expression",
    ),
    of(
        "key_column_usage",
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name column_name \
         ordinal_position# position_in_unique_constraint# referenced_table_schema referenced_table_name referenced_column_name",
    ),
    of(
        "table_constraints",
        "constraint_catalog constraint_schema constraint_name table_schema table_name constraint_type enforced",
    ),
    of(
        "referential_constraints",
        "constraint_catalog constraint_schema constraint_name unique_constraint_catalog unique_constraint_schema \
         unique_constraint_name match_option update_rule delete_rule table_name referenced_table_name",
    ),
    of("check_constraints", "constraint_catalog constraint_schema constraint_name check_clause"),
    of(
        "views",
        "table_catalog table_schema table_name view_definition check_option is_updatable definer security_type \
         character_set_client collation_connection",
    ),
    of(
        "routines",
        "specific_name routine_catalog routine_schema routine_name routine_type data_type dtd_identifier routine_body \
         routine_definition is_deterministic sql_data_access security_type created last_altered sql_mode routine_comment definer",
    ),
    of(
        "parameters",
        "specific_catalog specific_schema specific_name ordinal_position# parameter_mode parameter_name data_type \
         dtd_identifier routine_type",
    ),
    of(
        "triggers",
        "trigger_catalog trigger_schema trigger_name event_manipulation event_object_schema event_object_table action_order# \
         action_condition action_statement action_orientation action_timing created sql_mode definer character_set_client \
         collation_connection database_collation",
    ),
    of(
        "events",
        "event_catalog event_schema event_name definer time_zone event_body event_definition event_type execute_at \
         interval_value interval_field status event_comment",
    ),
    of(
        "partitions",
        "table_catalog table_schema table_name partition_name subpartition_name partition_ordinal_position# partition_method partition_expression partition_description table_rows#",
    ),
    of("user_privileges", "grantee table_catalog privilege_type is_grantable"),
    of("schema_privileges", "grantee table_catalog table_schema privilege_type is_grantable"),
    of("table_privileges", "grantee table_catalog table_schema table_name privilege_type is_grantable"),
    of(
        "column_privileges",
        "grantee table_catalog table_schema table_name column_name privilege_type is_grantable",
    ),
    of("processlist", "id# user host db command time# state info"),
    of("engines", "engine support comment transactions xa savepoints"),
    of("plugins", "plugin_name plugin_version plugin_status plugin_type plugin_library plugin_license"),
    of("character_sets", "character_set_name default_collate_name description maxlen#"),
    of("collations", "collation_name character_set_name id# is_default is_compiled sortlen# pad_attribute"),
    of("collation_character_set_applicability", "collation_name character_set_name"),
    of("files", "file_id# file_name file_type tablespace_name table_catalog engine"),
    of("keywords", "word reserved#"),
    variables("global_variables"),
    variables("session_variables"),
    variables("global_status"),
    variables("session_status"),
];
